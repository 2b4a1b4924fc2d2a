/* Prints, for each instruction set of this CPU, a hash of what the kernel computes of fixed numbers.

   It is compiled by several compilers, for several systems; all must print the same hashes. */

#include <stdio.h>

#define SOURCE "test"
#include "../../spacy_elmo/bilm/kernel/kernel.c"

enum { P = 24, D = 44, ROWS = 7, STEPS = 5, POSITIONS = 11, CHARACTERS = 13 };

static uint32_t seed;

static float number(float scale) { /* a multiple of 2^-10, so that float16 holds it, too */
  seed = seed * 1664525u + 1013904223u;
  return ((int32_t)(seed >> 21) - 1024) * scale / 1024.f;
}

static uint64_t hash(uint64_t h, const void *data, size_t size) {
  for (size_t i = 0; i < size; ++i) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return h;
}

static uint16_t half(float x) { /* of a multiple of 2^-10 below 2 */
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x == 0) return 0;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
}

/* A product of columns in panels of 4 * width; gates: those of each cell lie side by side. */
static Product pack(int width, int inputs, int columns, enum kind kind, int is_gates) {
  const int cells = columns / 4, panel = 4 * width, padded = round_up(inputs, 4);
  const int n = is_gates ? (cells + width - 1) / width : (columns + panel - 1) / panel;
  char *weights = calloc((size_t)n * panel * padded, 4);
  float *bias = calloc((size_t)n * panel, 4), *scales = calloc((size_t)n * panel, 4);
  int32_t *sums = calloc((size_t)n * panel, 4);
  for (int column = 0; column < columns; ++column) {
    const int cell = column % cells;
    const int at = is_gates ? cell / width * panel + column / cells * width + cell % width : column;
    const size_t start = (size_t)(at / panel) * panel * (kind == INT8 ? padded : inputs);
    bias[at] = number(1);
    scales[at] = number(.001f) + .002f;
    for (int k = 0; k < inputs; ++k) {
      const float w = number(.5f);
      if (kind == INT8) {
        const int8_t q = (int8_t)(w * 254);
        ((int8_t *)weights)[start + (size_t)(k / 4 * panel + at % panel) * 4 + k % 4] = q;
        sums[at] += q;
      } else if (kind == HALF)
        ((uint16_t *)weights)[start + (size_t)k * panel + at % panel] = half(w);
      else
        ((float *)weights)[start + (size_t)k * panel + at % panel] = w * 1.001f;
    }
  }
  return (Product){inputs, columns, kind, weights, bias, scales, sums};
}

static Layer layer_of(int width, enum kind kind, int projects) {
  const int n = projects ? P : D;
  Layer layer = {pack(width, n, 4 * D, kind, 1), pack(width, n, 4 * D, kind, 1), {0}, D, .9f, .8f};
  if (projects) layer.hr = pack(width, D, P, kind == INT8 ? HALF : kind, 0), layer.hr.bias = NULL;
  return layer;
}

static uint64_t lstm(const char *set, enum kind kind, int projects) {
  const int width = elmo_width(set), n = projects ? P : D;
  const int32_t sizes[STEPS] = {ROWS, ROWS, 4, 3, 1};
  Layer layers[2] = {layer_of(width, kind, projects), layer_of(width, kind, projects)};
  static float x[2 * 22 * D], out[2 * 22 * D], h[2 * ROWS * D], c[2 * ROWS * D];
  for (int i = 0; i < 2 * 22 * D; ++i) x[i] = number(2);
  for (int i = 0; i < 2 * ROWS * D; ++i) h[i] = number(1), c[i] = number(1);
  memset(h, 0, sizeof(float) * n); /* zeros: their scale is zero */
  if (elmo_lstm(set, layers, STEPS, sizes, x, h, c, out)) return 0;
  return hash(hash(hash(1, out, sizeof(float) * 2 * 22 * n), h, sizeof(float) * 2 * ROWS * n), c, sizeof c);
}

static uint64_t training(const char *set) {
  const int width = elmo_width(set);
  const int32_t sizes[STEPS] = {ROWS, ROWS, 4, 3, 1};
  static float x[2 * 22 * P], gates[2 * 22 * 4 * D], cells[2 * 22 * D], m[2 * 22 * D], out[2 * 22 * P];
  static float h[2 * ROWS * P], first[2 * ROWS * D], c[2 * ROWS * D], d_hs[2 * 22 * P], d_gates[2 * 22 * 4 * D];
  Layer layers[2], back[2];
  for (int d = 0; d < 2; ++d) {
    layers[d] = (Layer){{0}, pack(width, P, 4 * D, SINGLE, 1), pack(width, D, P, SINGLE, 0), D, .9f, .8f};
    back[d] = (Layer){{0}, pack(width, 4 * D, P, SINGLE, 0), pack(width, P, D, SINGLE, 0), D, .9f, .8f};
    layers[d].hh.bias = layers[d].hr.bias = back[d].hh.bias = back[d].hr.bias = NULL;
  }
  for (int i = 0; i < 2 * 22 * 4 * D; ++i) gates[i] = number(2);
  for (int i = 0; i < 2 * 22 * P; ++i) x[i] = number(1);
  for (int i = 0; i < 2 * ROWS * P; ++i) h[i] = number(1);
  for (int i = 0; i < 2 * ROWS * D; ++i) first[i] = c[i] = number(1);
  if (elmo_lstm_forward(set, layers, STEPS, sizes, gates, h, c, cells, m, out)) return 0;
  uint64_t found = hash(hash(hash(1, out, sizeof out), gates, sizeof gates), m, sizeof m);
  if (elmo_lstm_backward(set, back, STEPS, sizes, gates, cells, first, out, x, h, c, d_hs, d_gates)) return 0;
  found = hash(hash(found, d_hs, sizeof d_hs), d_gates, sizeof d_gates);
  return hash(hash(found, h, sizeof h), c, sizeof c);
}

static uint64_t words(const char *set) {
  enum { WORDS = 100, FEATURES = 24, IN_FRONT = 3, COLUMNS = FEATURES + IN_FRONT, OUT = 37 };
  const int width = elmo_width(set), widths[2] = {1, 3}, numbers[2] = {5, 19};
  const int row = round_up(5, width) + 3 * round_up(19, width);
  static int64_t ids[WORDS * POSITIONS];
  static float tables[CHARACTERS * 200], bias[FEATURES], x[WORDS * COLUMNS], out[WORDS * OUT];
  int32_t sizes[WORDS];
  for (int i = 0; i < WORDS * POSITIONS; ++i) ids[i] = (seed = seed * 1664525u + 1013904223u) % CHARACTERS;
  for (int i = 0; i < WORDS; ++i) sizes[i] = 3 + i % 9;
  for (int c = 0; c < CHARACTERS; ++c)
    for (int place = 0, at = 0; place < 4; ++place)
      for (int f = 0; f < round_up(place ? 19 : 5, width); ++f, ++at)
        tables[c * row + at] = f < (place ? 19 : 5) ? number(1) * 1.001f : 0;
  for (int i = 0; i < FEATURES; ++i) bias[i] = number(1);
  for (int i = 0; i < WORDS * COLUMNS; ++i) x[i] = number(1);
  Product highways[4], projection = pack(width, COLUMNS, OUT, SINGLE, 0);
  for (int i = 0; i < 4; ++i) highways[i] = pack(width, FEATURES, FEATURES, SINGLE, 0);
  uint64_t found = 1;
  for (int i = 0; i < 4; ++i) { /* with and without highways and a projection */
    Encoder encoder = {2, row, i == 1, FEATURES, i == 0 ? 0 : 2, widths, numbers, bias, highways, {0}};
    if (i != 2) encoder.projection = projection;
    if (elmo_words(set, &encoder, WORDS, POSITIONS, ids, sizes, tables, x, out)) return 0;
    found = hash(hash(found, x, sizeof x), out, sizeof out);
  }
  return elmo_multiply(set, &projection, WORDS, x, out) ? 0 : hash(found, out, sizeof out);
}

int main(void) {
  const char *set;
  for (int i = 0; (set = elmo_set(i)); ++i) {
    printf("%s", set);
    for (int kind = HALF; kind <= INT8; ++kind)
      for (int projects = 0; projects < 2; ++projects) {
        seed = 1;
        printf(" %016llx", (unsigned long long)lstm(set, kind, projects));
      }
    seed = 1;
    printf(" %016llx", (unsigned long long)words(set));
    seed = 1;
    printf(" %016llx\n", (unsigned long long)training(set));
  }
}
