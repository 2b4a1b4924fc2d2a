// One LSTM layer of a biLM on a CPU, both directions; the equations are those of lstm_layer.py.
//
// Each step multiplies a block of cells by a small matrix product whose result stays in cache,
// where the gates are applied at once: no pass over memory for gates, copies or conversions.
// Where few sentences are left, a step waits for its weights: those of the inputs are then read once
// for many steps, and the recurrent ones in 16 bits, if these hold them exactly.
// Products take float32 or bfloat16 operands and accumulate in float32; the rest is float32.
//
// Shapes: N tokens in packed order, B sentences, P = projection_dim, D = dim (a multiple of NB).
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <torch/extension.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#if !defined(CPUBLAS_BRGEMM_BF16BF16F32) || !defined(CPUBLAS_BRGEMM_F32F32F32)
#error "This PyTorch has no small matrix products (brgemm) for float32 and bfloat16."
#endif

namespace {

using at::BFloat16;
using at::Half;
namespace blas = at::native::cpublas;
constexpr int64_t NB = 32;      // cells of a block: its gates are one product of 4 * NB columns
constexpr int64_t DEPTH = 512;  // of a product
constexpr int64_t ROWS = 16;    // sentences are padded to a multiple of this, or to 1, 2, 4 or 8
constexpr int64_t FEW = 4;      // sentences of a step that waits for its weights
constexpr int64_t STRETCH = 2 * ROWS;  // tokens of such steps whose inputs are multiplied at once

int64_t padded(int64_t n) {
  for (int64_t few = 1; few < ROWS; few *= 2)
    if (n <= few) return few;
  return (n + ROWS - 1) / ROWS * ROWS;
}

// exp by Cephes' polynomial, without branches, so that the compiler vectorises it.
inline float exp_(float x) {
  x = x < -87.f ? -87.f : (x > 88.f ? 88.f : x);
  const float n = std::floor(x * 1.44269504088896341f + 0.5f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  return y * scale;
}
inline float sigmoid_(float x) { return 1.f / (1.f + exp_(-x)); }
inline float tanh_(float x) { return 2.f / (1.f + exp_(-2.f * x)) - 1.f; }

inline uint16_t round_(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
inline BFloat16 as(float x, BFloat16*) { return BFloat16(round_(x), BFloat16::from_bits()); }
inline float as(float x, float*) { return x; }
inline void convert(const float* in, BFloat16* out, int64_t n) {
  uint16_t* to = reinterpret_cast<uint16_t*>(out);
  for (int64_t k = 0; k < n; ++k) to[k] = round_(in[k]);
}
inline void convert(const float* in, float* out, int64_t n) {
  std::memcpy(out, in, n * sizeof(float));
}

// Numbers in 32 bits: those of a column of b that are neighbours, for bfloat16 two rows of it (VNNI).
template <typename T>
constexpr int64_t PAIR = sizeof(float) / sizeof(T);

template <typename T>
void product(int64_t M, int64_t N, int64_t K, const T* a, int64_t ld, const T* b, float* c) {
  for (int64_t k = 0; k < K; k += DEPTH)  // so that its part of b stays in cache
    blas::brgemm(M, N, std::min(DEPTH, K - k), ld, N, N, k > 0, a + k, b + k * N, c,
                 std::is_same<T, BFloat16>::value);
}

// Sixteen columns of a row of b (of two rows for bfloat16), and their part in the sums of a row of a.
#ifdef __AVX512F__
inline __m512 load_(const float* b) { return _mm512_loadu_ps(b); }
inline __m512 load_(const Half* b) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
}
inline __m512 add_(__m512 sum, const float* a, __m512 b) {
  return _mm512_fmadd_ps(_mm512_set1_ps(*a), b, sum);
}
#ifdef __AVX512BF16__
inline __m512i load_(const BFloat16* b) { return _mm512_loadu_si512(b); }
inline __m512 add_(__m512 sum, const BFloat16* a, __m512i b) {
  int32_t pair;
  std::memcpy(&pair, a, sizeof pair);
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(pair), (__m512bh)b);
}
template <typename T>
constexpr bool READS_FEW = true;
#else
template <typename T>
constexpr bool READS_FEW = std::is_same<T, float>::value;
#endif

// c += a * b for M rows of a; b streams by once. The sums are those of `product`, in its order.
template <int M, int COLUMNS, typename T, typename W>
void add_rows(int64_t n, int64_t N, int64_t K, const T* a, int64_t ld, const W* b, float* c) {
  constexpr int64_t AT_ONCE = std::is_same<T, BFloat16>::value ? 2 : 1;
  for (; n + 16 * COLUMNS <= N; n += 16 * COLUMNS) {
    __m512 sums[M][COLUMNS];
    for (int r = 0; r < M; ++r)
      for (int j = 0; j < COLUMNS; ++j) sums[r][j] = _mm512_loadu_ps(c + r * N + n + 16 * j);
    for (int64_t k = 0; k < K; k += AT_ONCE)
      for (int j = 0; j < COLUMNS; ++j) {
        const auto row = load_(b + k * N + (n + 16 * j) * AT_ONCE);
        for (int r = 0; r < M; ++r) sums[r][j] = add_(sums[r][j], a + r * ld + k, row);
      }
    for (int r = 0; r < M; ++r)
      for (int j = 0; j < COLUMNS; ++j) _mm512_storeu_ps(c + r * N + n + 16 * j, sums[r][j]);
  }
  if constexpr (COLUMNS > 1) add_rows<M, 1>(n, N, K, a, ld, b, c);
}
template <typename T, typename W>
void add_few(int64_t M, int64_t N, int64_t K, const T* a, int64_t ld, const W* b, float* c) {
  const auto add = M == 1   ? add_rows<1, 8, T, W>
                   : M == 2 ? add_rows<2, 4, T, W>
                   : M == 3 ? add_rows<3, 4, T, W>
                            : add_rows<4, 4, T, W>;
  add(0, N, K, a, ld, b, c);
}
#else
template <typename T>
constexpr bool READS_FEW = false;
template <typename T, typename W>
void add_few(int64_t, int64_t, int64_t, const T*, int64_t, const W*, float*) {}
#endif

// The same for at most FEW rows; by `halves`, the same weights, if there are any.
template <typename T>
void add_product(int64_t M, int64_t N, int64_t K, const T* a, int64_t ld, const T* b,
                 const Half* halves, float* c) {
  if constexpr (std::is_same<T, float>::value)
    if (halves) return add_few(M, N, K, a, ld, halves, c);
  add_few(M, N, K, a, ld, b, c);
}

constexpr int64_t PART = 16;  // columns whose rows stay in cache

// A (K, N) operand b whose column n is row(n).
template <typename T, typename F>
void pack_columns(const F& row, T* out, int64_t K, int64_t N) {
  const int64_t n_pairs = K / PAIR<T>;
  std::vector<T> rows(PART * K);
  for (int64_t n0 = 0; n0 < N; n0 += PART) {
    const int64_t n_rows = std::min(PART, N - n0);
    for (int64_t n = 0; n < n_rows; ++n) convert(row(n0 + n), rows.data() + n * K, K);
    const float* from = reinterpret_cast<const float*>(rows.data());
    float* to = reinterpret_cast<float*>(out) + n0;
    for (int64_t k = 0; k < n_pairs; ++k, to += N)
      for (int64_t n = 0; n < n_rows; ++n) std::memcpy(to + n, from + n * n_pairs + k, 4);
  }
}
// N columns of a (K, N) operand b, `out_N` columns wide, whose row k is row(k).
template <typename T, typename F>
void pack_rows(const F& row, T* out, int64_t K, int64_t N, int64_t out_N) {
  std::vector<T> rows(2 * N);
  for (int64_t k = 0; k < K; k += PAIR<T>, out += PAIR<T> * out_N) {
    for (int64_t i = 0; i < PAIR<T>; ++i) convert(row(k + i), rows.data() + i * N, N);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t i = 0; i < PAIR<T>; ++i) out[n * PAIR<T> + i] = rows[i * N + n];
  }
}
template <typename T>
void pack_gates(const float* ih, const float* hh, T* out, int64_t D, int64_t P) {
  // (4D, P) twice -> blocks of (2P, 4 * NB)
  for (int64_t block = 0; block < D / NB; ++block, out += 2 * P * 4 * NB) {
    const auto place = [&](int64_t n) { return (n / NB * D + block * NB + n % NB) * P; };
    pack_columns([&](int64_t n) { return ih + place(n); }, out, P, 4 * NB);
    pack_columns([&](int64_t n) { return hh + place(n); }, out + P * 4 * NB, P, 4 * NB);
  }
}
// The row of the weights that is the k-th of `d_gates`: in blocks of NB cells, each with four gates.
inline int64_t row_of_gate(int64_t k, int64_t D) {
  return (k / NB % 4) * D + k / (4 * NB) * NB + k % NB;
}
template <typename T>
void pack_both(const float* ih, const float* hh, T* out, int64_t D, int64_t P) {
  // (4D, P) twice, side by side: (4D, 2P), rows in the order of `d_gates`
  const auto place = [&](int64_t k) { return row_of_gate(k, D) * P; };
  pack_rows([&](int64_t k) { return ih + place(k); }, out, 4 * D, P, 2 * P);
  pack_rows([&](int64_t k) { return hh + place(k); }, out + P * PAIR<T>, 4 * D, P, 2 * P);
}
template <typename T>
void pack_projection(const float* hr, T* out, int64_t D, int64_t P) {
  pack_columns([&](int64_t n) { return hr + n * D; }, out, D, P);  // (P, D) -> (D, P)
}
template <typename T>
void pack_blocks(const float* hr, T* out, int64_t D, int64_t P) {
  // (P, D) -> blocks of (P, NB)
  for (int64_t block = 0; block < D / NB; ++block, out += P * NB)
    pack_rows([&](int64_t k) { return hr + k * D + block * NB; }, out, P, NB, NB);
}
// The gradient of (4D, P) twice, from its transpose (2P, 4D) in the order of `d_gates`.
template <typename T>
void unpack_gradient(const T* from, float* d_ih, float* d_hh, int64_t D, int64_t P) {
  for (float* to : {d_ih, d_hh}) {
    for (int64_t k0 = 0; k0 < 4 * D; k0 += PART)
      for (int64_t n0 = 0; n0 < P; n0 += PART)
        for (int64_t k = k0; k < k0 + PART; ++k)
          for (int64_t n = n0; n < std::min(n0 + PART, P); ++n)
            to[row_of_gate(k, D) * P + n] = from[n * 4 * D + k];
    from += P * 4 * D;
  }
}

struct Steps {  // of a packed batch
  std::vector<int64_t> size, start;
  int64_t n_tokens = 0, n_sentences = 0;
  explicit Steps(const std::vector<int64_t>& sizes) : size(sizes) {
    for (auto s : sizes) {
      start.push_back(n_tokens);
      n_tokens += s;
    }
    n_sentences = sizes.empty() ? 0 : sizes[0];
  }
  int64_t count() const { return static_cast<int64_t>(size.size()); }
};

// Each job is one direction of some of the sentences: nothing is shared between jobs.
int64_t rows_of_jobs(int64_t n_sentences) {
  const int64_t groups =
      std::max<int64_t>(1, std::min<int64_t>(at::get_num_threads() / 2, n_sentences / ROWS));
  return padded((n_sentences + groups - 1) / groups);
}
template <typename F>
void each_job(int64_t n_sentences, const F& job) {
  const int64_t rows = rows_of_jobs(n_sentences), groups = (n_sentences + rows - 1) / rows;
  at::parallel_for(0, 2 * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = (i / 2) * rows, last = std::min(n_sentences, first + rows);
      if (first < last) job(i % 2, first, last);
    }
  });
}

template <typename T>
at::ScalarType type_of();
template <>
at::ScalarType type_of<float>() {
  return at::kFloat;
}
template <>
at::ScalarType type_of<BFloat16>() {
  return at::kBFloat16;
}

// The weights as `forward` reads them: of the gates, and of the projection, empty if there is none.
template <typename T>
std::vector<at::Tensor> pack_(const at::Tensor& w_ih, const at::Tensor& w_hh,
                              const at::Tensor& w_hr) {
  const int64_t D = w_ih.size(1) / 4, P = w_ih.size(2);
  const at::TensorOptions of_T = w_ih.options().dtype(type_of<T>());
  std::vector<at::Tensor> packed = {at::empty({2, D / NB, 2 * P * 4 * NB}, of_T),
                                    at::empty({w_hr.defined() ? 2 : 0, D, P}, of_T)};
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      pack_gates(w_ih.data_ptr<float>() + d * 4 * D * P, w_hh.data_ptr<float>() + d * 4 * D * P,
                 packed[0].data_ptr<T>() + d * D / NB * 2 * P * 4 * NB, D, P);
      if (w_hr.defined())
        pack_projection(w_hr.data_ptr<float>() + d * P * D, packed[1].data_ptr<T>() + d * D * P, D,
                        P);
    }
  });
  return packed;
}

// Adds the weights of the recurrence alone, in half precision, if it holds them exactly.
void pack_halves(std::vector<at::Tensor>& packed) {
  const int64_t length = packed[0].size(2) / 2;
  const std::vector<at::Tensor> whole = {packed[0].narrow(2, length, length), packed[1]};
  std::vector<at::Tensor> halves;
  for (const at::Tensor& w : whole) {
    halves.push_back(w.to(at::kHalf).contiguous());
    if (!halves.back().to(at::kFloat).equal(w)) return;
  }
  packed.insert(packed.end(), halves.begin(), halves.end());
}

template <typename T>
std::vector<at::Tensor> forward_(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                                 const std::vector<at::Tensor>& packed, const at::Tensor& bias,
                                 const Steps& steps, double cell_clip, double proj_clip,
                                 bool save) {
  const int64_t N = steps.n_tokens, B = steps.n_sentences, P = x.size(2), D = c0.size(2);
  const bool projects = packed[1].numel() > 0;
  const bool reads_few = READS_FEW<T> && !save && P % ROWS == 0;
  const at::TensorOptions of = x.options();
  const at::TensorOptions of_T = of.dtype(type_of<T>());
  at::Tensor out = at::empty({2, N, P}, of), h_n = at::empty_like(h0), c_n = c0.clone();
  at::Tensor xh = at::empty({2, N + ROWS, 2 * P}, of_T);
  at::Tensor m = at::empty({2, (save ? N : B) + ROWS, D}, of_T);
  at::Tensor gates, cells;
  if (save) {
    gates = at::empty({2, N, 4 * D}, of);
    cells = at::empty({2, N, D}, of);
  }
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      const float* from = x.data_ptr<float>() + d * N * P;
      T* to = xh.data_ptr<T>() + d * (N + ROWS) * 2 * P;
      for (int64_t n = 0; n < N; ++n) convert(from + n * P, to + n * 2 * P, P);
      std::memset(static_cast<void*>(to + N * 2 * P), 0, ROWS * 2 * P * sizeof(T));
    }
  });
  const float cc = cell_clip, pc = proj_clip;
  each_job(B, [&](int64_t d, int64_t first, int64_t last) {
    std::vector<float> scratch(padded(last - first) * std::max(4 * NB, P));
    T* xh_ = xh.data_ptr<T>() + d * (N + ROWS) * 2 * P;
    T* m_ = m.data_ptr<T>() + d * m.size(1) * D;
    const T* w = packed[0].data_ptr<T>() + d * (D / NB) * 2 * P * 4 * NB;
    const T* w_hr = projects ? packed[1].data_ptr<T>() + d * D * P : nullptr;
    const Half *halves = nullptr, *halves_hr = nullptr;
    if (packed.size() > 2) {
      halves = packed[2].data_ptr<Half>() + d * 4 * D * P;
      halves_hr = packed[3].data_ptr<Half>() + (projects ? d * D * P : 0);
    }
    std::vector<float> inputs;  // of the steps with few sentences, by block: x * W_ih
    int64_t inputs_at = 0, inputs_end = 0;  // their tokens
    const float* b = bias.data_ptr<float>() + d * 4 * D;
    float* c = c_n.data_ptr<float>() + d * B * D;
    float* out_ = out.data_ptr<float>() + d * N * P;
    float* hn = h_n.data_ptr<float>() + d * B * P;
    for (int64_t r = first; r < last; ++r)
      convert(h0.data_ptr<float>() + (d * B + r) * P, xh_ + r * 2 * P + P, P);
    for (int64_t t = 0; t < steps.count(); ++t) {
      const int64_t n = std::min(steps.size[t], last) - first, at = steps.start[t] + first;
      if (n <= 0) break;
      T* m_step = m_ + (save ? at : first) * D;
      const bool is_few = reads_few && n <= FEW && n == steps.size[t];
      if (is_few && at + n > inputs_end) {
        inputs.resize(D / NB * STRETCH * 4 * NB);
        inputs_at = at;
        inputs_end = std::min(N, at + STRETCH);
        for (int64_t block = 0; block < D / NB; ++block)
          product(padded(inputs_end - at), 4 * NB, P, xh_ + at * 2 * P, 2 * P,
                  w + block * 2 * P * 4 * NB, inputs.data() + block * STRETCH * 4 * NB);
      }
      for (int64_t i = 0; i < D / NB; ++i) {
        const int64_t block = t % 2 ? D / NB - 1 - i : i;  // begins with weights still in cache
        const T* w_block = w + block * 2 * P * 4 * NB;
        float* sums = scratch.data();
        if (is_few) {
          sums = inputs.data() + (block * STRETCH + at - inputs_at) * 4 * NB;
          add_product(n, 4 * NB, P, xh_ + at * 2 * P + P, 2 * P, w_block + P * 4 * NB,
                      halves ? halves + block * P * 4 * NB : nullptr, sums);
        } else {
          product(padded(n), 4 * NB, 2 * P, xh_ + at * 2 * P, 2 * P, w_block, sums);
        }
        const float* bj = b + block * NB;
        for (int64_t r = 0; r < n; ++r) {
          const float* s = sums + r * 4 * NB;
          float* cr = c + (first + r) * D + block * NB;
          T* mr = m_step + r * D + block * NB;
          float gi[NB], gf[NB], gg[NB], go[NB], gm[NB];
          for (int64_t j = 0; j < NB; ++j) {
            gi[j] = sigmoid_(s[j] + bj[j]);
            gf[j] = sigmoid_(s[NB + j] + bj[D + j]);
            gg[j] = tanh_(s[2 * NB + j] + bj[2 * D + j]);
            go[j] = sigmoid_(s[3 * NB + j] + bj[3 * D + j]);
            float v = gf[j] * cr[j] + gi[j] * gg[j];
            if (cc > 0) v = v < -cc ? -cc : (v > cc ? cc : v);
            cr[j] = v;
            gm[j] = go[j] * tanh_(v);
          }
          convert(gm, mr, NB);
          if (save) {
            float* g = gates.data_ptr<float>() + (d * N + at) * 4 * D + (block * n + r) * 4 * NB;
            std::memcpy(g, gi, sizeof gi);
            std::memcpy(g + NB, gf, sizeof gf);
            std::memcpy(g + 2 * NB, gg, sizeof gg);
            std::memcpy(g + 3 * NB, go, sizeof go);
            std::memcpy(cells.data_ptr<float>() + (d * N + at) * D + (block * n + r) * NB, cr,
                        NB * 4);
          }
        }
      }
      const int64_t next = t + 1 < steps.count() ? std::min(steps.size[t + 1], last) - first : 0;
      if (projects && is_few) {
        std::fill_n(scratch.data(), n * P, 0.f);
        add_product(n, P, D, m_step, D, w_hr, halves_hr, scratch.data());
      } else if (projects) {
        product(padded(n), P, D, m_step, D, w_hr, scratch.data());
      }
      for (int64_t r = 0; r < n; ++r) {
        float* o = out_ + (at + r) * P;
        if (projects) {
          const float* s = scratch.data() + r * P;
          for (int64_t k = 0; k < P; ++k)
            o[k] = pc > 0 ? (s[k] < -pc ? -pc : (s[k] > pc ? pc : s[k])) : s[k];
        } else {
          for (int64_t k = 0; k < P; ++k) o[k] = static_cast<float>(m_step[r * D + k]);
        }
        if (r < next)
          convert(o, xh_ + (steps.start[t + 1] + first + r) * 2 * P + P, P);
        else
          std::memcpy(hn + (first + r) * P, o, P * sizeof(float));
      }
    }
    blas::brgemm_release(std::is_same<T, BFloat16>::value);
  });
  if (!save) return {out, h_n, c_n};
  return {out, h_n, c_n, xh, gates, cells, m};
}

template <typename T>
std::vector<at::Tensor> backward_(const at::Tensor& d_out, const at::Tensor& d_h_n,
                                  const at::Tensor& d_c_n, const at::Tensor& c0,
                                  const at::Tensor& w_ih, const at::Tensor& w_hh,
                                  const at::Tensor& w_hr, const at::Tensor& out,
                                  const at::Tensor& xh, const at::Tensor& gates,
                                  const at::Tensor& cells, const at::Tensor& m, const Steps& steps,
                                  double cell_clip, double proj_clip) {
  const int64_t N = steps.n_tokens, B = steps.n_sentences, P = out.size(2), D = c0.size(2);
  const bool projects = w_hr.defined();
  const at::TensorOptions of = out.options();
  const at::TensorOptions of_T = of.dtype(type_of<T>());
  at::Tensor d_x = at::empty({2, N, P}, of), d_h = d_h_n.contiguous().clone(),
             d_c = d_c_n.contiguous().clone();
  const int64_t LD = 4 * D + 32;  // no power of two: rows would share cache lines' places
  at::Tensor d_gates = at::empty({2, N + ROWS, LD}, of_T), d_hs = at::empty({2, N + ROWS, P}, of_T);
  at::Tensor packed = at::empty({2, 4 * D, 2 * P}, of_T);
  at::Tensor packed_hr = projects ? at::empty({2, P, D}, of_T) : at::Tensor();
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      pack_both(w_ih.data_ptr<float>() + d * 4 * D * P, w_hh.data_ptr<float>() + d * 4 * D * P,
                packed.data_ptr<T>() + d * 4 * D * 2 * P, D, P);
      if (projects)
        pack_blocks(w_hr.data_ptr<float>() + d * P * D, packed_hr.data_ptr<T>() + d * P * D, D, P);
      std::memset(static_cast<void*>(d_gates.data_ptr<T>() + (d * (N + ROWS) + N) * LD), 0,
                  ROWS * LD * sizeof(T));
      std::memset(static_cast<void*>(d_hs.data_ptr<T>() + (d * (N + ROWS) + N) * P), 0,
                  ROWS * P * sizeof(T));
    }
  });
  const float cc = cell_clip > 0 ? cell_clip : INFINITY, pc = proj_clip;
  const int64_t rows_of_job = rows_of_jobs(B);
  at::Tensor d_bias = at::zeros({(B + rows_of_job - 1) / rows_of_job, 2, D / NB, 4, NB}, of);
  each_job(B, [&](int64_t d, int64_t first, int64_t last) {
    std::vector<float> scratch(padded(last - first) * std::max(NB, 2 * P));
    const T* w = packed.data_ptr<T>() + d * 4 * D * 2 * P;
    float* dh = d_h.data_ptr<float>() + d * B * P;
    float* dc = d_c.data_ptr<float>() + d * B * D;
    float* d_b = d_bias.data_ptr<float>() + (first / rows_of_job * 2 + d) * 4 * D;
    for (int64_t t = steps.count() - 1; t >= 0; --t) {
      const int64_t n = std::min(steps.size[t], last) - first, at = steps.start[t] + first;
      if (n <= 0) continue;
      const int64_t n_before = t == 0 ? 0 : std::min(steps.size[t - 1], last) - first;
      T* dhs = d_hs.data_ptr<T>() + (d * (N + ROWS) + at) * P;
      T* dg = d_gates.data_ptr<T>() + (d * (N + ROWS) + at) * LD;
      for (int64_t r = 0; r < n; ++r) {
        const float* from = d_out.data_ptr<float>() + (d * N + at + r) * P;
        const float* o = out.data_ptr<float>() + (d * N + at + r) * P;
        float* carried = dh + (first + r) * P;
        for (int64_t k = 0; k < P; ++k) {
          float v = from[k] + carried[k];
          if (pc > 0 && !(std::fabs(o[k]) < pc)) v = 0;
          carried[k] = v;
          dhs[r * P + k] = as(v, dhs);
        }
      }
      for (int64_t block = 0; block < D / NB; ++block) {
        if (projects)
          product(padded(n), NB, P, dhs, P, packed_hr.data_ptr<T>() + d * P * D + block * P * NB,
                  scratch.data());
        for (int64_t r = 0; r < n; ++r) {
          const float* g =
              gates.data_ptr<float>() + (d * N + at) * 4 * D + (block * n + r) * 4 * NB;
          const float* cr = cells.data_ptr<float>() + (d * N + at) * D + (block * n + r) * NB;
          const float* before = t == 0 ? c0.data_ptr<float>() + (d * B + first + r) * D + block * NB
                                       : cells.data_ptr<float>() +
                                             (d * N + steps.start[t - 1] + first) * D +
                                             (block * n_before + r) * NB;
          const float* dm = projects ? scratch.data() + r * NB : dh + (first + r) * P + block * NB;
          float* dcr = dc + (first + r) * D + block * NB;
          T* to = dg + r * LD + block * 4 * NB;
          float di[NB], df[NB], dq[NB], dO[NB];
          for (int64_t j = 0; j < NB; ++j) {
            const float i = g[j], f = g[NB + j], q = g[2 * NB + j], o = g[3 * NB + j], v = cr[j],
                        th = tanh_(v);
            float dv = dcr[j] + dm[j] * o * (1.f - th * th);
            dv = std::fabs(v) < cc ? dv : 0.f;
            di[j] = dv * q * i * (1.f - i);
            df[j] = dv * before[j] * f * (1.f - f);
            dq[j] = dv * i * (1.f - q * q);
            dO[j] = dm[j] * th * o * (1.f - o);
            dcr[j] = dv * f;
          }
          float* sums = d_b + block * 4 * NB;
          for (int64_t j = 0; j < NB; ++j) sums[j] += di[j];
          for (int64_t j = 0; j < NB; ++j) sums[NB + j] += df[j];
          for (int64_t j = 0; j < NB; ++j) sums[2 * NB + j] += dq[j];
          for (int64_t j = 0; j < NB; ++j) sums[3 * NB + j] += dO[j];
          convert(di, to, NB);
          convert(df, to + NB, NB);
          convert(dq, to + 2 * NB, NB);
          convert(dO, to + 3 * NB, NB);
        }
      }
      product(padded(n), 2 * P, 4 * D, dg, LD, w, scratch.data());
      for (int64_t r = 0; r < n; ++r) {
        std::memcpy(d_x.data_ptr<float>() + (d * N + at + r) * P, scratch.data() + r * 2 * P,
                    P * 4);
        std::memcpy(dh + (first + r) * P, scratch.data() + r * 2 * P + P, P * 4);
      }
    }
    blas::brgemm_release(std::is_same<T, BFloat16>::value);
  });
  at::Tensor d_ih = at::empty({2, 4 * D, P}, of), d_hh = at::empty({2, 4 * D, P}, of);
  std::vector<at::Tensor> d_hrs;
  for (int64_t d = 0; d < 2; ++d) {
    const at::Tensor dg = d_gates[d].narrow(0, 0, N).narrow(1, 0, 4 * D);
    const at::Tensor d_w = at::mm(xh[d].narrow(0, 0, N).t().contiguous(), dg).contiguous();
    unpack_gradient(d_w.data_ptr<T>(), d_ih.data_ptr<float>() + d * 4 * D * P,
                    d_hh.data_ptr<float>() + d * 4 * D * P, D, P);
    if (projects)
      d_hrs.push_back(
          at::mm(d_hs[d].narrow(0, 0, N).t().contiguous(), m[d].narrow(0, 0, N)).to(at::kFloat));
  }
  const at::Tensor d_hr = projects ? at::stack(d_hrs) : at::Tensor();
  d_bias = d_bias.sum(0).transpose(1, 2).flatten(1, 3);
  return {d_x, d_h, d_c, d_ih, d_hh, d_bias, d_hr};
}

// In a thread that has not been here yet, PyTorch's header sets the number of threads anew.
void keep_number_of_threads() {
#ifdef _OPENMP
  const int n = omp_get_max_threads();
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(n);
#endif
}

at::Tensor given(const std::optional<at::Tensor>& t) { return t ? t->contiguous() : at::Tensor(); }

std::vector<at::Tensor> pack(const at::Tensor& w_ih, const at::Tensor& w_hh,
                             const std::optional<at::Tensor>& w_hr, bool half, bool reads_often) {
  keep_number_of_threads();
  auto f = half ? pack_<BFloat16> : pack_<float>;
  auto packed = f(w_ih.contiguous(), w_hh.contiguous(), given(w_hr));
  if (reads_often && !half) pack_halves(packed);
  return packed;
}
std::vector<at::Tensor> forward(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                                const std::vector<at::Tensor>& packed, const at::Tensor& bias,
                                const std::vector<int64_t>& sizes, double cell_clip,
                                double proj_clip, bool save) {
  keep_number_of_threads();
  const Steps steps(sizes);
  auto f = packed[0].scalar_type() == at::kBFloat16 ? forward_<BFloat16> : forward_<float>;
  return f(x.contiguous(), h0.contiguous(), c0.contiguous(), packed, bias.contiguous(), steps,
           cell_clip, proj_clip, save);
}
std::vector<at::Tensor> backward(
    const at::Tensor& d_out, const at::Tensor& d_h_n, const at::Tensor& d_c_n, const at::Tensor& c0,
    const at::Tensor& w_ih, const at::Tensor& w_hh, const std::optional<at::Tensor>& w_hr,
    const at::Tensor& out, const at::Tensor& xh, const at::Tensor& gates, const at::Tensor& cells,
    const at::Tensor& m, const std::vector<int64_t>& sizes, double cell_clip, double proj_clip) {
  keep_number_of_threads();
  const Steps steps(sizes);
  auto f = xh.scalar_type() == at::kBFloat16 ? backward_<BFloat16> : backward_<float>;
  return f(d_out.contiguous(), d_h_n, d_c_n, c0.contiguous(), w_ih.contiguous(), w_hh.contiguous(),
           given(w_hr), out, xh, gates, cells, m, steps, cell_clip, proj_clip);
}
// Whether products of this type run on this CPU; an exception otherwise.
bool supports(bool half) {
  const at::Tensor a = at::ones({ROWS, 2 * ROWS}, half ? at::kBFloat16 : at::kFloat);
  const at::Tensor b = at::ones({2 * ROWS, NB}, a.options()), c = at::zeros({ROWS, NB});
  if (half)
    product(ROWS, NB, 2 * ROWS, a.data_ptr<BFloat16>(), 2 * ROWS, b.data_ptr<BFloat16>(),
            c.data_ptr<float>());
  else
    product(ROWS, NB, 2 * ROWS, a.data_ptr<float>(), 2 * ROWS, b.data_ptr<float>(),
            c.data_ptr<float>());
  blas::brgemm_release(half);
  return c.eq(2 * ROWS).all().item<bool>();
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("supports", &supports);
  module.def("pack", &pack, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("backward", &backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
