/* Training: the recurrence of one direction of a layer, forward and backward, in float32.

   What does not depend on the step before is left to the caller, for all steps at once: the products
   of the inputs before the forward pass, the gradients of weights and inputs after the backward one.
   Rows are those of a packed batch: the rows of a step are the first ones of the step before. N rows
   in all, of B sentences; P, D: outputs and cells. */

/* In `gates` (N, 4 D): i, f, g, o from the inputs, with their bias; then what they are after their
   activation. h (B, P) and c (B, D) are the states before, then after. Written: cells and m (N, D),
   what is projected; out (N, P). hh: see Layer. */
TARGET static int NAME(lstm_forward)(const Layer *l, int n_steps, const int32_t *sizes, float *gates,
                                     float *h, float *c, float *cells, float *m, float *out) {
  const int P = l->hh.inputs, D = l->cells;
  const float *h_before = h, *c_before = c;
  for (int t = 0; t < n_steps; ++t) {
    const int n = sizes[t];
    for (int first = 0; first < D; first += V) {
      const int cols = D - first < V ? D - first : V;
      for (int i = 0, r; i < n; i += r) {
        float part[R * 4 * V];
        const int rows = n - i < R ? n - i : R;
        for (int q = 0; q < rows; ++q)
          for (int j = 0; j < 4; ++j)
            store(part + (q * 4 + j) * V,
                  NAME(load_part)(gates + ((size_t)(i + q) * 4 + j) * D + first, cols));
        r = NAME(tile)(n - i, &l->hh, first / V, part, 4 * V, h_before + (size_t)i * P, P, NULL, 0, NULL,
                       part);
        for (int q = 0; q < r; ++q) {
          const size_t at = (size_t)(i + q) * D + first;
          float *gate = gates + (size_t)(i + q) * 4 * D + first, *sum = part + q * 4 * V;
          vf in = NAME(sigmoid)(load(sum)), forget = NAME(sigmoid)(load(sum + V));
          vf new = NAME(tanh)(load(sum + 2 * V)), o = NAME(sigmoid)(load(sum + 3 * V));
          vf cell = FMA(forget, NAME(load_part)(c_before + at, cols), in * new);
          cell = NAME(clip)(cell, l->cell_clip);
          NAME(store_part)(gate, in, cols);
          NAME(store_part)(gate + D, forget, cols);
          NAME(store_part)(gate + 2 * (size_t)D, new, cols);
          NAME(store_part)(gate + 3 * (size_t)D, o, cols);
          NAME(store_part)(cells + at, cell, cols);
          NAME(store_part)(m + at, o * NAME(tanh)(cell), cols);
        }
      }
    }
    if (l->hr.weights) {
      NAME(multiply_rows)(&l->hr, n, m, D, out, P);
      for (size_t k = 0; k < (size_t)n * P; k += V) {
        const int left = (size_t)n * P - k < V ? (int)((size_t)n * P - k) : V;
        NAME(store_part)(out + k, NAME(clip)(NAME(load_part)(out + k, left), l->proj_clip), left);
      }
    } else {
      memcpy(out, m, sizeof(float) * n * P);
    }
    memcpy(h, out, sizeof(float) * n * P);
    memcpy(c, cells, sizeof(float) * n * D);
    h_before = out, c_before = cells;
    gates += (size_t)n * 4 * D, cells += (size_t)n * D, m += (size_t)n * D, out += (size_t)n * P;
  }
  return 0;
}

/* From what the forward pass has written, c_before (B, D) the states before, and d_out (N, P). d_h and
   d_c (B, P) and (B, D) are the gradients of the last states, then of the first. Written: d_hs (N, P),
   of the outputs before their clip; d_gates (N, 4 D), of the gates before their activation. hh and hr
   of the layer are the products with the transposed weights. */
TARGET static int NAME(lstm_backward)(const Layer *l, int n_steps, const int32_t *sizes,
                                      const float *gates, const float *cells, const float *c_before,
                                      const float *out, const float *d_out, float *d_h, float *d_c,
                                      float *d_hs, float *d_gates) {
  const int P = l->hh.columns, D = l->cells;
  const vf one = all(1.f);
  float *d_ms = malloc(sizeof(float) * ((size_t)sizes[0] * D + 1));
  if (!d_ms) return 1;
  size_t start = 0;
  for (int t = 0; t < n_steps; ++t) start += sizes[t];
  for (int t = n_steps - 1; t >= 0; --t) {
    const int n = sizes[t];
    start -= n;
    const float *c_start = t ? cells + (start - sizes[t - 1]) * D : c_before;
    float *d_h_step = d_hs + start * P, *d_gates_step = d_gates + start * 4 * D;
    for (size_t k = 0; k < (size_t)n * P; ++k) {
      const float y = out[start * P + k], by_y = d_out[start * P + k] + d_h[k];
      d_h_step[k] = l->proj_clip == INFINITY || (y < l->proj_clip && y > -l->proj_clip) ? by_y : 0.f;
    }
    if (l->hr.weights) NAME(multiply_rows)(&l->hr, n, d_h_step, P, d_ms, D);
    for (int q = 0; q < n; ++q) {
      const float *d_m_row = (l->hr.weights ? d_ms : d_h_step) + (size_t)q * D;
      const float *row = gates + (start + q) * 4 * D;
      float *d_row = d_gates_step + (size_t)q * 4 * D, *d_c_row = d_c + (size_t)q * D;
      for (int k = 0; k < D; k += V) {
        const int left = D - k < V ? D - k : V;
        vf in = NAME(load_part)(row + k, left), forget = NAME(load_part)(row + D + k, left);
        vf new = NAME(load_part)(row + 2 * (size_t)D + k, left);
        vf o = NAME(load_part)(row + 3 * (size_t)D + k, left);
        vf cell = NAME(load_part)(cells + (start + q) * D + k, left);
        vf tanh_c = NAME(tanh)(cell);
        vf d_m = NAME(load_part)(d_m_row + k, left);
        vf by_c = FMA(d_m * o, one - tanh_c * tanh_c, NAME(load_part)(d_c_row + k, left));
        by_c = (vf)((vi)by_c & (vi)(cell < all(l->cell_clip)) & (vi)(cell > all(-l->cell_clip)));
        vf before = NAME(load_part)(c_start + (size_t)q * D + k, left);
        NAME(store_part)(d_row + k, by_c * new * in * (one - in), left);
        NAME(store_part)(d_row + D + k, by_c * before * forget * (one - forget), left);
        NAME(store_part)(d_row + 2 * (size_t)D + k, by_c * in * (one - new * new), left);
        NAME(store_part)(d_row + 3 * (size_t)D + k, d_m * tanh_c * o * (one - o), left);
        NAME(store_part)(d_c_row + k, by_c * forget, left);
      }
    }
    NAME(multiply_rows)(&l->hh, n, d_gates_step, 4 * D, d_h, P);
  }
  free(d_ms);
  return 0;
}
