/* Reading a biLM on a CPU: LSTM layers and the token encoder; and the recurrence of a layer in training.

   Every instruction set computes the same numbers, bit for bit: body.h is compiled once for each, and
   its sums run over the inputs in one order, as chains of fused multiplications and additions. Compile
   with -ffp-contract=off: a compiler that fused other operations would round them otherwise.

   The caller has checked all sizes. Nothing is kept between calls, and no thread is started. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32) && !defined(__clang__)
#error "GCC does not align vectors on the stack of Windows: compile with clang or zig"
#elif defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

enum kind { HALF, SINGLE, INT8 }; /* of weights */

/* Weights of a product, for some columns at a time, see packing.py: panels of 4 V columns,
   in each the rows one after another; of INT8 four rows side by side, for each column. */
typedef struct {
  int32_t inputs, columns, kind;
  const void *weights;
  const float *bias;   /* of each column, or NULL */
  const float *scales; /* of INT8: what a weight of each column is multiplied with */
  const int32_t *sums; /* of INT8: the sum of each column's weights */
} Product;

typedef struct { /* one direction of a layer */
  Product ih, hh, hr; /* panels of ih and hh: gates i, f, g, o of V cells; hr.weights may be NULL */
  int32_t cells;
  float cell_clip, proj_clip; /* INFINITY: none */
} Layer;

/* The sums of a filter come from a table: what each character adds at each place in the filter. */
typedef struct {
  int32_t n_widths, row, is_tanh; /* row: floats of a character, all filters at all places */
  int32_t n_features, n_highways;
  const int32_t *widths, *numbers; /* of the filters */
  const float *bias;
  const Product *highways; /* carry and transform of each */
  Product projection; /* of the features, behind a word's vector if it has one; weights may be NULL */
} Encoder;

/* Where a step has fewer rows than FEW, the input products of several steps are made ahead. */
enum { FEW = 24, AT_ONCE = 96 };
enum { BLOCK = 256 }; /* inputs of a partial sum */

static int round_up(int n, int step) { return (n + step - 1) / step * step; }

static void *take(char **scratch, size_t size) { /* 64 bytes: a line of the cache */
  void *start = *scratch;
  *scratch += (size + 63) / 64 * 64;
  return start;
}

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(x) PASTE(x, SET)

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#include <immintrin.h>

#define V 8
#define R 3
#define MAX(a, b) _mm256_max_ps(a, b) /* a > b ? a : b, so that b may be a NaN */
#define MIN(a, b) _mm256_min_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LOAD_HALF(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#if defined(__clang__)
/* A pretence that the index depends on the sum: loaded earlier, weights would take a register that
   16 of them do not leave, and sums go to memory and back in each step. */
#define AFTER(sum, index) __asm__("" : "+r"(index) : "x"(sum))
#else
#define AFTER(sum, index)
#endif
#define SET avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define OFFSET 0 /* what is added to quantized inputs */
/* Products of signed and unsigned bytes: |w| · sign(x, w). Two of at most 127 · 127 fit 16 bits. */
#define DOT(sum, x, w)                                                                                  \
  _mm256_add_epi32((__m256i)(sum), _mm256_madd_epi16(_mm256_set1_epi16(1),                                         \
                                          _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)(w)), _mm256_sign_epi8((__m256i)(x), (__m256i)(w)))))
#include "body.h"
#if defined(__clang__) || __GNUC__ >= 11
#define AVXVNNI(DO) DO(avxvnni)
#define SET avxvnni
#define TARGET __attribute__((target("avx2,fma,f16c,avxvnni")))
#define OFFSET 128
#define DOT(sum, x, w) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(x), (__m256i)(w))
#include "body.h"
#else
#define AVXVNNI(DO)
#endif
#undef V
#undef R
#undef MAX
#undef MIN
#undef FMA
#undef LOAD_HALF
#undef AFTER

#define AFTER(sum, index)
#define V 16
#define R 6
#define MAX(a, b) _mm512_max_ps(a, b)
#define MIN(a, b) _mm512_min_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LOAD_HALF(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define SET avx512
#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#define OFFSET 0
#define DOT(sum, x, w)                                                                                  \
  _mm512_add_epi32((__m512i)(sum), _mm512_madd_epi16(_mm512_set1_epi16(1), _mm512_maddubs_epi16(_mm512_abs_epi8((__m512i)(w)), \
      _mm512_mask_sub_epi8((__m512i)(x), _mm512_movepi8_mask((__m512i)(w)), _mm512_setzero_si512(), (__m512i)(x)))))
#include "body.h"
#define SET avx512vnni
#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define OFFSET 128
#define DOT(sum, x, w) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(w))
#include "body.h"

static uint64_t enabled(void) { /* registers that the operating system saves */
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int has(const char *name) {
  uint32_t a, b = 0, c, d, ebx7 = 0, ecx7 = 0, eax71 = 0, most = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const uint32_t fma_osxsave_avx_f16c = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
  if ((c & fma_osxsave_avx_f16c) != fma_osxsave_avx_f16c || (enabled() & 6) != 6) return 0;
  if (!__get_cpuid_count(7, 0, &most, &ebx7, &ecx7, &d) || !(ebx7 >> 5 & 1)) return 0;
  if (!strcmp(name, "avx2")) return 1;
  if (!strcmp(name, "avxvnni"))
    return most >= 1 && __get_cpuid_count(7, 1, &eax71, &b, &c, &d) && eax71 >> 4 & 1;
  const uint32_t f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  if ((ebx7 & f_dq_bw_vl) != f_dq_bw_vl || (enabled() & 0xe6) != 0xe6) return 0;
  return !strcmp(name, "avx512") || (!strcmp(name, "avx512vnni") && (ecx7 >> 11 & 1));
}
#define SETS(DO) DO(avx512vnni) DO(avx512) AVXVNNI(DO) DO(avx2)

#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define AFTER(sum, index)
#define V 4
#define R 5
#define MAX(a, b) vbslq_f32(vcgtq_f32(a, b), a, b)
#define MIN(a, b) vbslq_f32(vcltq_f32(a, b), a, b)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define LOAD_HALF(p) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(p))))
#define SET neon
#define TARGET
#define OFFSET 0
#define DOT(sum, x, w)                                                                                  \
  vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w))),                      \
                            vpaddlq_s16(vmull_high_s8(x, w))))
#include "body.h"
#define SET neondot
#define TARGET __attribute__((target("+dotprod")))
#define OFFSET 0
#define DOT(sum, x, w) vdotq_s32(sum, x, w)
#include "body.h"

static int has(const char *name) {
  if (!strcmp(name, "neon")) return 1;
#if defined(__linux__)
  return getauxval(AT_HWCAP) >> 20 & 1; /* ASIMDDP */
#elif defined(__APPLE__)
  int found = 0;
  size_t size = sizeof found;
  return !sysctlbyname("hw.optional.arm.FEAT_DotProd", &found, &size, NULL, 0) && found;
#elif defined(_WIN32)
  __declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long);
  return IsProcessorFeaturePresent(43); /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
#else
  return 0;
#endif
}
#define SETS(DO) DO(neondot) DO(neon)

#else
#error "the kernel has no instructions for this processor"
#endif

/* The instruction sets that this CPU runs, the fastest first, and how many cells a panel has. */
API const char *elmo_set(int i) {
#define NAME_OF(set) if (has(#set) && !i--) return #set;
  SETS(NAME_OF)
  return NULL;
}

API int elmo_width(const char *set) {
#define WIDTH(name) if (!strcmp(set, #name)) return sizeof(vf_##name) / sizeof(float);
  SETS(WIDTH)
  return 0;
}

API const char *elmo_source(void) { return SOURCE; }

/* Each returns 0, or 1 where there is no memory. Those of a layer compute both directions; arrays have
   the second direction behind the first. */

static size_t sum(int n, const int32_t *sizes) {
  size_t total = 0;
  for (int i = 0; i < n; ++i) total += sizes[i];
  return total;
}

API int elmo_lstm(const char *set, const Layer *layers, int n_steps, const int32_t *sizes, const float *x,
                  float *h, float *c, float *out) {
  const size_t n = sum(n_steps, sizes), B = sizes[0];
  const size_t I = layers->ih.inputs, P = layers->hh.inputs, D = layers->cells;
  int (*lstm)(const Layer *, int, const int32_t *, const float *, float *, float *, float *) = NULL;
#define LSTM(name) if (!strcmp(set, #name)) lstm = lstm_##name;
  SETS(LSTM)
  for (int d = 0; d < 2; ++d)
    if (!lstm || lstm(layers + d, n_steps, sizes, x + d * n * I, h + d * B * P, c + d * B * D,
                      out + d * n * P)) return 1;
  return 0;
}

API int elmo_lstm_forward(const char *set, const Layer *layers, int n_steps, const int32_t *sizes,
                          float *gates, float *h, float *c, float *cells, float *m, float *out) {
  const size_t n = sum(n_steps, sizes), B = sizes[0], P = layers->hh.inputs, D = layers->cells;
  int (*lstm)(const Layer *, int, const int32_t *, float *, float *, float *, float *, float *, float *) = NULL;
#define FORWARD(name) if (!strcmp(set, #name)) lstm = lstm_forward_##name;
  SETS(FORWARD)
  for (int d = 0; d < 2; ++d)
    if (!lstm || lstm(layers + d, n_steps, sizes, gates + d * n * 4 * D, h + d * B * P, c + d * B * D,
                      cells + d * n * D, m + d * n * D, out + d * n * P)) return 1;
  return 0;
}

API int elmo_lstm_backward(const char *set, const Layer *layers, int n_steps, const int32_t *sizes,
                           const float *gates, const float *cells, const float *c_before, const float *out,
                           const float *d_out, float *d_h, float *d_c, float *d_hs, float *d_gates) {
  const size_t n = sum(n_steps, sizes), B = sizes[0], P = layers->hh.columns, D = layers->cells;
  int (*lstm)(const Layer *, int, const int32_t *, const float *, const float *, const float *, const float *,
              const float *, float *, float *, float *, float *) = NULL;
#define BACKWARD(name) if (!strcmp(set, #name)) lstm = lstm_backward_##name;
  SETS(BACKWARD)
  for (int d = 0; d < 2; ++d)
    if (!lstm || lstm(layers + d, n_steps, sizes, gates + d * n * 4 * D, cells + d * n * D,
                      c_before + d * B * D, out + d * n * P, d_out + d * n * P, d_h + d * B * P,
                      d_c + d * B * D, d_hs + d * n * P, d_gates + d * n * 4 * D)) return 1;
  return 0;
}

API int elmo_multiply(const char *set, const Product *product, int rows, const float *x, float *out) {
#define MULTIPLY(name) if (!strcmp(set, #name)) { multiply_rows_##name(product, rows, x, product->inputs, out, product->columns); return 0; }
  SETS(MULTIPLY)
  return 1;
}

API int elmo_words(const char *set, const Encoder *encoder, int n_words, int n_positions, const int64_t *ids,
                   const int32_t *sizes, const float *tables, float *x, float *out) {
#define WORDS(name) if (!strcmp(set, #name)) return words_##name(encoder, n_words, n_positions, ids, sizes, tables, x, out);
  SETS(WORDS)
  return 1;
}
