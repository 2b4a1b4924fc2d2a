/* What kernel.c computes, for one instruction set: SET, vectors of V floats, tiles of R rows. */

#define vf NAME(vf)
#define vi NAME(vi)
#define vb NAME(vb)
#define all NAME(all)
#define load NAME(load)
#define store NAME(store)
#define ex NAME(ex)
#define FN TARGET INLINE

typedef float vf __attribute__((vector_size(4 * V)));
typedef int32_t vi __attribute__((vector_size(4 * V)));
typedef int8_t vb __attribute__((vector_size(V)));
typedef float NAME(vf_at) __attribute__((vector_size(4 * V), aligned(4), may_alias)); /* in memory */
typedef int32_t NAME(vi_at) __attribute__((vector_size(4 * V), aligned(4), may_alias));
typedef int8_t NAME(vb_at) __attribute__((vector_size(V), aligned(1), may_alias));

FN vf all(float x) { return x - (vf){0}; }
FN vf load(const float *p) { return *(const NAME(vf_at) *)p; }
FN void store(float *p, vf x) { *(NAME(vf_at) *)p = x; }

FN vf NAME(load_part)(const float *p, int n) { /* the first n of V, then zeros */
  if (n >= V) return load(p);
  float part[V] = {0};
  memcpy(part, p, (size_t)n * sizeof(float));
  return load(part);
}

FN void NAME(store_part)(float *p, vf x, int n) {
  float part[V];
  if (n >= V) { store(p, x); return; }
  store(part, x);
  memcpy(p, part, (size_t)n * sizeof(float));
}

FN vf NAME(clip)(vf x, float most) { return MAX(all(-most), MIN(all(most), x)); }

/* e^x for |x| <= 28, so that no product of three overflows. The polynomial is that of Cephes. */
FN vf ex(vf x) {
  const vf magic = all(12582912.f); /* 1.5 · 2^23: a number added to it is rounded to an integer */
  x = NAME(clip)(x, 28.f);
  vf z = FMA(x, all(1.44269504f), magic), n = z - magic;
  vf r = FMA(n, all(2.12194440e-4f), FMA(n, all(-0.693359375f), x));
  vf y = FMA(r, all(1.9875691500e-4f), all(1.3981999507e-3f));
  y = FMA(y, r, all(8.3334519073e-3f));
  y = FMA(y, r, all(4.1665795894e-2f));
  y = FMA(y, r, all(1.6666665459e-1f));
  y = FMA(y, r, all(5.0000001201e-1f));
  y = FMA(y, r * r, r + all(1.f));
  return y * (vf)(((vi)z << 23) + 0x3f800000);
}

FN vf NAME(sigmoid)(vf x) { return all(1.f) / (all(1.f) + ex(-x)); }
FN vf NAME(tanh)(vf x) { return all(2.f) / (all(1.f) + ex(x * all(-2.f))) - all(1.f); }

/* sum[q][j] += x[q] · columns j of a panel, for r rows. Products of BLOCK inputs are added one to the
   other before they are added to the sum: a chain of thousands would round too often. */
FN void NAME(multiply)(const int r, const int kind, int inputs, const float *x, size_t stride,
                       const void *weights, vf sum[][4]) {
  for (int k = 0; k < inputs;) {
    const int end = inputs - k < BLOCK ? inputs : k + BLOCK;
    vf part[6][4];
    UNROLL for (int q = 0; q < r; ++q)
      UNROLL for (int j = 0; j < 4; ++j) part[q][j] = all(0.f);
    for (; k < end; ++k) {
      UNROLL for (int j = 0; j < 4; ++j) {
        size_t at = ((size_t)k * 4 + j) * V;
        if (kind == HALF && j) UNROLL for (int q = 0; q < r; ++q) AFTER(part[q][j - 1], at);
        vf w = kind == HALF ? (vf)LOAD_HALF((const uint16_t *)weights + at) : load((const float *)weights + at);
        UNROLL for (int q = 0; q < r; ++q) part[q][j] = FMA(all(x[q * stride + k]), w, part[q][j]);
      }
    }
    UNROLL for (int q = 0; q < r; ++q)
      UNROLL for (int j = 0; j < 4; ++j) sum[q][j] += part[q][j];
  }
}

FN void NAME(multiply_int8)(const int r, int inputs, const int8_t *x, size_t stride,
                            const int8_t *weights, vi sum[][4]) {
  for (int k = 0; k < inputs; k += 4) {
    vi four[6];
    UNROLL for (int q = 0; q < r; ++q) {
      int32_t bytes;
      memcpy(&bytes, x + q * stride + k, 4);
      four[q] = bytes - (vi){0};
    }
    UNROLL for (int j = 0; j < 4; ++j) {
      vi w = *(const NAME(vi_at) *)(weights + ((size_t)k + j) * 4 * V);
      UNROLL for (int q = 0; q < r; ++q) sum[q][j] = (vi)DOT(sum[q][j], four[q], w);
    }
  }
}

/* Round n numbers to 255 steps of their largest absolute value. Returns the size of a step: NaN if
   one of them is not finite, so that all products are NaN. */
FN float NAME(quantize)(int n, const float *x, int8_t *rounded) {
  vf most = all(0.f), zero = all(0.f);
  float largest = 0.f, bad = 0.f;
  for (int i = 0; i < n; i += V) {
    vf part = NAME(load_part)(x + i, n - i);
    most = MAX(MAX(part, -part), most);
    zero = FMA(part, all(0.f), zero);
  }
  for (int i = 0; i < V; ++i) {
    largest = most[i] > largest ? most[i] : largest;
    bad += zero[i];
  }
  const float inverse = largest > 1e-30f ? 127.f / largest : 0.f;
  for (int i = 0; i < n; i += V) {
    vf z = NAME(load_part)(x + i, n - i) * all(inverse) + all(12582912.f);
    *(NAME(vb_at) *)(rounded + i) = __builtin_convertvector((vi)z + OFFSET, vb);
  }
  return (largest > 1e-30f ? largest / 127.f : 0.f) + bad;
}

/* before + x · a panel, for r rows. The inputs of INT8 are rounded to steps. */
FN void NAME(tile_of)(const int r, const int kind, const Product *p, int panel, const float *before,
                      size_t before_stride, const float *x, size_t stride, const int8_t *rounded,
                      size_t rounded_stride, const float *step, float *out) {
  const size_t at = (size_t)panel * 4 * V;
  vf sum[6][4];
  UNROLL for (int q = 0; q < r; ++q)
    UNROLL for (int j = 0; j < 4; ++j) sum[q][j] = load(before + q * before_stride + j * V);
  if (kind == INT8) {
    const int inputs = round_up(p->inputs, 4);
    vi whole[6][4];
    UNROLL for (int q = 0; q < r; ++q)
      UNROLL for (int j = 0; j < 4; ++j)
        whole[q][j] = *(const NAME(vi_at) *)(p->sums + at + j * V) * -OFFSET;
    NAME(multiply_int8)(r, inputs, rounded, rounded_stride, (const int8_t *)p->weights + at * inputs, whole);
    UNROLL for (int q = 0; q < r; ++q)
      UNROLL for (int j = 0; j < 4; ++j)
        sum[q][j] = FMA(__builtin_convertvector(whole[q][j], vf),
                        load(p->scales + at + j * V) * all(step[q]), sum[q][j]);
  } else {
    const char *weights = (const char *)p->weights + at * p->inputs * (kind == HALF ? 2 : 4);
    NAME(multiply)(r, kind, p->inputs, x, stride, weights, sum);
  }
  UNROLL for (int q = 0; q < r; ++q)
    UNROLL for (int j = 0; j < 4; ++j) store(out + (q * 4 + j) * V, sum[q][j]);
}

/* The same for the first of some rows, of which it returns the number, so that tiles are of about
   equal size. It is compiled once for each size and kind: more copies would take long to compile. */
TARGET NOINLINE static int NAME(tile)(int rows, const Product *p, int panel, const float *before,
                                      size_t before_stride, const float *x, size_t stride,
                                      const int8_t *rounded, size_t rounded_stride, const float *step,
                                      float *out) {
  const int r = rows / ((rows + R - 1) / R);
#define TILE(r, kind)                                                                                   \
  NAME(tile_of)(r, kind, p, panel, before, before_stride, x, stride, rounded, rounded_stride, step, out)
#define TILES(r)                                                                                        \
  case r:                                                                                               \
    if (r > R) break;                                                                                   \
    if (p->kind == HALF) TILE(r, HALF);                                                                 \
    else if (p->kind == SINGLE) TILE(r, SINGLE);                                                        \
    else TILE(r, INT8);                                                                                 \
    break;
  switch (r) { TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) }
  return r;
}

/* x · weights + bias for some rows, of HALF or SINGLE. */
TARGET static void NAME(multiply_rows)(const Product *p, int rows, const float *x, size_t x_stride,
                                       float *out, size_t out_stride) {
  static const float zeros[4 * V];
  float part[R * 4 * V];
  for (int column = 0; column < p->columns; column += 4 * V)
    for (int i = 0, r; i < rows; i += r) {
      r = NAME(tile)(rows - i, p, column / (4 * V), p->bias ? p->bias + column : zeros, 0,
                     x + i * x_stride, x_stride, NULL, 0, NULL, part);
      for (int q = 0; q < r; ++q)
        for (int j = 0; j < 4 * V && column + j < p->columns; j += V)
          NAME(store_part)(out + (i + q) * out_stride + column + j, load(part + q * 4 * V + j),
                           p->columns - column - j);
    }
}

/* With a = 1 + e^-i, b = 1 + e^-f and g' = e^-2g, c is (c · a (1 + g') + (1 - g') b) / (a (1 + g') b):
   one division where the sigmoids and the tanh are three. */
FN vf NAME(cell)(const Layer *l, const float *gates, float *c) {
  const vf one = all(1.f), g = ex(load(gates + 2 * V) * all(-2.f)), o = one + ex(-load(gates + 3 * V));
  vf a = one + ex(-load(gates)), b = one + ex(-load(gates + V));
  a *= one + g;
  vf new = NAME(clip)(FMA(load(c), a, (one - g) * b) / (a * b), l->cell_clip);
  store(c, new);
  vf e = ex(new * all(-2.f));
  return (one - e) / (o * (one + e));
}

TARGET static int NAME(lstm)(const Layer *l, int n_steps, const int32_t *sizes, const float *x, float *h,
                             float *c, float *out) {
  const int is_int8 = l->ih.kind == INT8;
  const int P = l->ih.inputs, H = l->hh.inputs, D = l->cells, n_rows = sizes[0];
  const int padded_D = round_up(D, V), n_panels = padded_D / V;
  const int padded_H = l->hr.weights ? round_up(H, 4 * V) : padded_D, bytes_x = round_up(P, V);
  const int at_once = n_rows > AT_ONCE ? n_rows : AT_ONCE;
  const size_t F = sizeof(float), size = 8 * 64 + F * (AT_ONCE * 4 * padded_D + at_once) + at_once * bytes_x
      + n_rows * (F * (2 * padded_D + padded_H + 1) + padded_H);
  char *block = malloc(size + 64), *scratch = block + (64 - (uintptr_t)block % 64);
  if (!block) return 1;
  float *gates = take(&scratch, F * AT_ONCE * 4 * padded_D), *step_x = take(&scratch, F * at_once);
  int8_t *rounded_x = take(&scratch, (size_t)at_once * bytes_x);
  float *cells = take(&scratch, F * n_rows * padded_D), *outputs = take(&scratch, F * n_rows * padded_D);
  float *hidden = take(&scratch, F * n_rows * padded_H), *step_h = take(&scratch, F * n_rows);
  int8_t *rounded_h = take(&scratch, (size_t)n_rows * padded_H);
  memset(cells, 0, F * n_rows * padded_D);
  memset(hidden, 0, F * n_rows * padded_H);
  for (int q = 0; q < n_rows; ++q) {
    memcpy(cells + (size_t)q * padded_D, c + (size_t)q * D, F * D);
    memcpy(hidden + (size_t)q * padded_H, h + (size_t)q * H, F * H);
    if (is_int8) step_h[q] = NAME(quantize)(H, hidden + (size_t)q * padded_H, rounded_h + (size_t)q * padded_H);
  }
  for (int t = 0; t < n_steps;) {
    /* What comes from the inputs, for some steps: few rows multiply slowly. */
    int rows = sizes[t], end = t + 1, first = 0;
    const int ahead = rows < FEW;
    while (ahead && end < n_steps && rows + sizes[end] <= AT_ONCE) rows += sizes[end++];
    if (is_int8)
      for (int q = 0; q < rows; ++q)
        step_x[q] = NAME(quantize)(P, x + (size_t)q * P, rounded_x + (size_t)q * bytes_x);
    for (int panel = 0; panel < n_panels * ahead; ++panel) {
      float *to = gates + (size_t)panel * rows * 4 * V;
      for (int i = 0, r; i < rows; i += r)
        r = NAME(tile)(rows - i, &l->ih, panel, l->ih.bias + panel * 4 * V, 0, x + (size_t)i * P, P,
                       rounded_x + (size_t)i * bytes_x, bytes_x, step_x + i, to + (size_t)i * 4 * V);
    }
    for (; t < end; ++t) {
      const int n = sizes[t];
      for (int panel = 0; panel < n_panels; ++panel)
        for (int i = 0, r; i < n; i += r) {
          float part[R * 4 * V], *gate = part;
          if (ahead) gate = gates + ((size_t)panel * rows + first + i) * 4 * V;
          else
            NAME(tile)(n - i, &l->ih, panel, l->ih.bias + panel * 4 * V, 0, x + (size_t)i * P, P,
                       rounded_x + (size_t)i * bytes_x, bytes_x, step_x + i, gate);
          r = NAME(tile)(n - i, &l->hh, panel, gate, 4 * V, hidden + (size_t)i * padded_H, padded_H,
                         rounded_h + (size_t)i * padded_H, padded_H, step_h + i, gate);
          for (int q = 0; q < r; ++q) {
            const size_t at = ((size_t)i + q) * padded_D + panel * V;
            store(outputs + at, NAME(cell)(l, gate + q * 4 * V, cells + at));
          }
        }
      if (l->hr.weights)
        NAME(multiply_rows)(&l->hr, n, outputs, padded_D, hidden, padded_H);
      else
        memcpy(hidden, outputs, F * n * padded_D);
      for (int q = 0; q < n; ++q) {
        float *row = hidden + (size_t)q * padded_H;
        for (int k = 0; k < padded_H; k += V) store(row + k, NAME(clip)(load(row + k), l->proj_clip));
        if (is_int8) step_h[q] = NAME(quantize)(H, row, rounded_h + (size_t)q * padded_H);
        memcpy(out, row, F * H);
        out += H;
      }
      first += n;
    }
    x += (size_t)rows * P;
  }
  for (int q = 0; q < n_rows; ++q) {
    memcpy(c + (size_t)q * D, cells + (size_t)q * padded_D, F * D);
    memcpy(h + (size_t)q * H, hidden + (size_t)q * padded_H, F * H);
  }
  free(block);
  return 0;
}

/* The features of a word: the maximum of each filter over its positions, and its activation. */
TARGET static void NAME(features)(const Encoder *e, int n_positions, const float *const *row, float *out) {
  const float *bias = e->bias;
  size_t offset = 0;
  for (int i = 0; i < e->n_widths; ++i) {
    const int width = e->widths[i], number = e->numbers[i], step = round_up(number, V);
    for (int k = 0; k < number; k += V, offset += V) {
      vf best = all(-INFINITY);
      for (int p = 0; p + width <= n_positions; ++p) {
        vf sum = load(row[p] + offset);
        for (int j = 1; j < width; ++j) sum += load(row[p + j] + offset + (size_t)j * step);
        best = MAX(sum, best);
      }
      best += NAME(load_part)(bias + k, number - k);
      if (e->is_tanh) best = NAME(tanh)(best);
      else best = MAX(all(0.f), best);
      NAME(store_part)(out + k, best, number - k);
    }
    offset += (size_t)step * (width - 1);
    bias += number;
    out += number;
  }
}

/* x = g · relu(transform) + (1 - g) · x, g = sigmoid(carry) */
TARGET static void NAME(highway)(int n, const float *carry, const float *transform, float *x) {
  for (int i = 0; i < n; i += V) {
    vf g = NAME(sigmoid)(NAME(load_part)(carry + i, n - i));
    vf old = NAME(load_part)(x + i, n - i), new = MAX(all(0.f), NAME(load_part)(transform + i, n - i));
    NAME(store_part)(x + i, FMA(g, new - old, old), n - i);
  }
}

/* The vectors of words, of some at a time, whose features the cache holds. */
TARGET static int NAME(words)(const Encoder *e, int n_words, int n_positions, const int64_t *ids,
                              const int32_t *sizes, const float *tables, float *x, float *out) {
  const int n = e->n_features, P = e->projection.columns, stride = P ? e->projection.inputs : n;
  const size_t pointers = sizeof(float *) * (n_positions + 1), size = e->n_highways ? (size_t)AT_ONCE * n : 0;
  const float **row = malloc(pointers + 2 * sizeof(float) * size);
  if (!row) return 1;
  float *carry = (float *)(row + n_positions + 1), *transform = carry + size;
  for (int rows; n_words; n_words -= rows, x += (size_t)rows * stride, out += (size_t)rows * P) {
    rows = n_words < AT_ONCE ? n_words : AT_ONCE;
    float *features = x + stride - n;
    for (int q = 0; q < rows; ++q, ids += n_positions, ++sizes) {
      for (int p = 0; p < *sizes; ++p) row[p] = tables + (size_t)ids[p] * e->row;
      NAME(features)(e, *sizes, row, features + (size_t)q * stride);
    }
    for (int i = 0; i < e->n_highways; ++i) {
      NAME(multiply_rows)(e->highways + 2 * i, rows, features, stride, carry, n);
      NAME(multiply_rows)(e->highways + 2 * i + 1, rows, features, stride, transform, n);
      for (int q = 0; q < rows; ++q)
        NAME(highway)(n, carry + (size_t)q * n, transform + (size_t)q * n, features + (size_t)q * stride);
    }
    if (P) NAME(multiply_rows)(&e->projection, rows, x, stride, out, P);
  }
  free(row);
  return 0;
}
#include "training.h"
#undef SET
#undef TARGET
#undef OFFSET
#undef DOT
