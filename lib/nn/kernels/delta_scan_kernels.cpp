#include "nn/kernels/delta_scan_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/float_product.h"
#include "nn/kernels/row_math.h"

// Notation within a chunk of n steps: S is the state before the chunk. b_t is the sum of the log
// decays from the first step to t. fade_ts = e^{b_t - b_s} for s <= t, else 0. fade* is fade
// without its diagonal:
//
//  z_t = v_t - e^{b_t} S^T k_t - sum over s < t of P_ts u_s    P = K K^T fade*,  u_t = beta_t z_t
//  o_t = e^{b_t} S^T q_t + sum over s <= t of A_ts u_s         A = Q K^T fade
//  S'  = e^{b_n} S + sum over s of k_s (e^{b_n - b_s} u_s)^T
//
// Forward substitution gives z: U = T diag(beta) (V - diag(e^b) K S) with T = (I + diag(beta)
// P)^-1, the WY form (Yang et al. 2024). b is summed in double. No exponent is above 0.

namespace nn {
namespace {

template <class Float> class Chunks {
 public:
  explicit Chunks(const DeltaHead<Float>& head) : head_(head) {
    const auto n = static_cast<std::size_t>(std::min(kDeltaChunk, head.steps));
    for (auto* const square : {&fade_, &p_, &a_, &d_p_, &d_a_}) square->resize(n * n);
    for (auto* const vector : {&from_start_, &to_end_}) vector->resize(n);
    for (auto* const values : {&u_, &d_z_, &other_})
      values->resize(n * static_cast<std::size_t>(head.d_value));
    for (auto* const keys : {&d_read_, &d_written_})
      keys->resize(n * static_cast<std::size_t>(head.d_key));
  }

  /// Computes the chunk that begins at step `begin`. Writes z (n, d_value), and o unless it is
  /// null.
  void forward(std::int64_t begin, Float* state, Float* o, Float* z) {
    enter(begin);
    MatrixOf<Float> s = matrix_of(state), rest(z, n_, head_.d_value);
    multiply<Float>(k_, Read::as_is, s, Read::as_is, rest);
    for (std::int64_t t = 0; t < n_; ++t) {
      const Float* const v = head_.v + (begin + t) * head_.value_stride;
      Float* const row = rest.row(t);
      const Float keep = from_start_[t];
#pragma omp simd
      for (std::int64_t j = 0; j < head_.d_value; ++j) row[j] = v[j] - keep * row[j];
    }
    substitute(rest);
    if (o != nullptr) write_output(begin, s, o);
    for (std::int64_t t = 0; t < n_; ++t) vec::scale(u_row(t), head_.d_value, to_end_[t]);
    vec::scale(state, head_.d_key * head_.d_value, from_start_[n_ - 1]);
    multiply<Float>(k_, Read::transposed, values(u_), Read::as_is, s, Into::sum);
  }

  /// `before` and `after` are the states around the chunk. On entry d_state is the gradient of
  /// `after`, on return the gradient of `before`.
  void backward(std::int64_t begin, const Float* before, const Float* after, const Float* z,
      Float* d_state, const DeltaGradients<Float>& g) {
    enter(begin);
    for (std::int64_t t = 0; t < n_; ++t)
      scaled_row(z + t * head_.d_value, head_.d_value, beta(t), u_row(t));
    const MatrixOf<const Float> d_o(
        g.d_o + begin * head_.value_stride, n_, head_.d_value, head_.value_stride),
        u(values(u_)), s(before, head_.d_key, head_.d_value);
    const MatrixOf<Float> d_s = matrix_of(d_state), d_z = values(d_z_), other = values(other_);
    multiply<Float>(q_, Read::as_is, k_, Read::transposed, square(a_));
    faded(a_, /*diagonal=*/true);

    // The gradient of u from o and from the chunk's last state.
    multiply<Float>(k_, Read::as_is, d_s, Read::as_is, d_z);
    for (std::int64_t t = 0; t < n_; ++t) vec::scale(d_z.row(t), head_.d_value, to_end_[t]);
    multiply<Float>(square(a_), Read::transposed, d_o, Read::as_is, d_z, Into::sum);
    substitute_back(d_z);
    for (std::int64_t t = 0; t < n_; ++t) {  // d_z: from the gradient of u_t to that of z_t and v_t
      const auto gate = (begin + t) * head_.gate_stride;
      g.d_beta[gate] = vec::dot(d_z.row(t), z + t * head_.d_value, head_.d_value);
      vec::scale(d_z.row(t), head_.d_value, beta(t));
      std::copy_n(d_z.row(t), head_.d_value, g.d_v + (begin + t) * head_.value_stride);
    }
    multiply<Float>(d_o, Read::as_is, u, Read::transposed, square(d_a_));
    faded(d_a_, /*diagonal=*/true);
    multiply<Float>(d_z, Read::as_is, u, Read::transposed, square(d_p_), Into::fresh, -1);
    faded(d_p_, /*diagonal=*/false);

    const Float across =
        vec::dot(after, static_cast<const Float*>(d_state), head_.d_key * head_.d_value);
    const MatrixOf<Float> d_q(g.d_q + begin * head_.key_stride, n_, head_.d_key, head_.key_stride),
        d_read(keys(d_read_)), d_written(keys(d_written_));
    // First the gradient of k in reads of the state, then the gradient of k in writes to it.
    for (std::int64_t t = 0; t < n_; ++t)
      scaled_row(u_row(t), head_.d_value, to_end_[t], other.row(t));
    multiply<Float>(other, Read::as_is, d_s, Read::transposed, d_written);
    multiply<Float>(square(d_p_), Read::transposed, k_, Read::as_is, d_written, Into::sum);
    multiply<Float>(square(d_a_), Read::transposed, q_, Read::as_is, d_written, Into::sum);
    vec::scale(d_state, head_.d_key * head_.d_value, from_start_[n_ - 1]);
    for (std::int64_t t = 0; t < n_; ++t)
      scaled_row(d_o.row(t), head_.d_value, from_start_[t], other.row(t));
    multiply<Float>(other, Read::as_is, s, Read::transposed, d_q);
    multiply<Float>(square(d_a_), Read::as_is, k_, Read::as_is, d_q, Into::sum);
    multiply<Float>(q_, Read::transposed, other, Read::as_is, d_s, Into::sum);
    for (std::int64_t t = 0; t < n_; ++t)
      scaled_row(d_z.row(t), head_.d_value, from_start_[t], other.row(t));
    multiply<Float>(other, Read::as_is, s, Read::transposed, d_read, Into::fresh, -1);
    multiply<Float>(square(d_p_), Read::as_is, k_, Read::as_is, d_read, Into::sum);
    multiply<Float>(k_, Read::transposed, other, Read::as_is, d_s, Into::sum, -1);
    write_key_gradients(begin, across, d_q, g);
  }

 private:
  void enter(std::int64_t begin) {
    begin_ = begin;
    n_ = std::min(kDeltaChunk, head_.steps - begin);
    q_ = MatrixOf<const Float>(
        head_.q + begin * head_.key_stride, n_, head_.d_key, head_.key_stride);
    k_ = MatrixOf<const Float>(
        head_.k + begin * head_.key_stride, n_, head_.d_key, head_.key_stride);
    double sums[kDeltaChunk], sum = 0;
    for (std::int64_t t = 0; t < n_; ++t)
      sums[t] = sum += static_cast<double>(head_.log_decay[(begin + t) * head_.gate_stride]);
    for (std::int64_t t = 0; t < n_; ++t) {
      Float* const row = fade_.data() + t * n_;
#pragma omp simd
      for (std::int64_t s = 0; s <= t; ++s)
        row[s] = vec::exp(static_cast<Float>(sums[t] - sums[s]));
      std::fill(row + t + 1, row + n_, Float(0));
      from_start_[t] = vec::exp(static_cast<Float>(sums[t]));
      to_end_[t] = vec::exp(static_cast<Float>(sum - sums[t]));
    }
    multiply<Float>(k_, Read::as_is, k_, Read::transposed, square(p_));
    faded(p_, /*diagonal=*/false);
  }

  /// Multiplies by fade or fade*.
  void faded(std::vector<Float>& of, bool diagonal) {
    const auto size = n_ * n_;
    Float* const x = of.data();
    const Float* const fade = fade_.data();
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) x[i] *= fade[i];
    if (diagonal) return;
    for (std::int64_t t = 0; t < n_; ++t) x[t * n_ + t] = 0;
  }

  /// Turns the rows of V - diag(e^b) K S into z and writes u.
  void substitute(const MatrixOf<Float>& z) {
    for (std::int64_t t = 0; t < n_; ++t) {
      Float* const row = z.row(t);
      const Float* const p = p_.data() + t * n_;
      for (std::int64_t s = 0; s < t; ++s) vec::add_scaled(-p[s], u_row(s), head_.d_value, row);
      scaled_row(row, head_.d_value, beta(t), u_row(t));
    }
  }

  /// Adds to the gradient of u what comes from later rows, which read u.
  void substitute_back(const MatrixOf<Float>& d_u) {
    for (std::int64_t t = n_ - 1; t >= 0; --t) {
      const Float* const p = p_.data() + t * n_;
      for (std::int64_t s = 0; s < t; ++s)
        vec::add_scaled(-p[s] * beta(t), d_u.row(t), head_.d_value, d_u.row(s));
    }
  }

  void write_output(std::int64_t begin, const MatrixOf<Float>& s, Float* o) {
    const MatrixOf<Float> out(
        o + begin * head_.value_stride, n_, head_.d_value, head_.value_stride);
    multiply<Float>(q_, Read::as_is, s, Read::as_is, out);
    for (std::int64_t t = 0; t < n_; ++t) vec::scale(out.row(t), head_.d_value, from_start_[t]);
    multiply<Float>(q_, Read::as_is, k_, Read::transposed, square(a_));
    faded(a_, /*diagonal=*/true);
    multiply<Float>(square(a_), Read::as_is, values(u_), Read::as_is, out, Into::sum);
  }

  // b_t is a factor e^{b_t} of what step t reads and e^{-b_t} of what step t writes. The last b is
  // also a factor of the state after the chunk. The gradient of log_decay_t is therefore a sum over
  // the steps from t on.
  void write_key_gradients(std::int64_t begin, Float across, const MatrixOf<Float>& d_q,
      const DeltaGradients<Float>& g) {
    Float sum = across;
    for (std::int64_t t = n_ - 1; t >= 0; --t) {
      Float* const d_k = g.d_k + (begin + t) * head_.key_stride;
      const Float *const read = d_read_.data() + t * head_.d_key,
                         *const written = d_written_.data() + t * head_.d_key, *const q = q_.row(t),
                         *const k = k_.row(t), *const of_q = d_q.row(t);
      Float gate = 0;
#pragma omp simd reduction(+ : gate)
      for (std::int64_t i = 0; i < head_.d_key; ++i) {
        d_k[i] = read[i] + written[i];
        gate += q[i] * of_q[i] + k[i] * (read[i] - written[i]);
      }
      g.d_log_decay[(begin + t) * head_.gate_stride] = sum += gate;
    }
  }

  static void scaled_row(const Float* x, std::int64_t n, Float factor, Float* y) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
  }

  Float beta(std::int64_t t) const { return head_.beta[(begin_ + t) * head_.gate_stride]; }
  Float* u_row(std::int64_t t) { return u_.data() + t * head_.d_value; }
  MatrixOf<Float> matrix_of(Float* state) const { return {state, head_.d_key, head_.d_value}; }
  MatrixOf<Float> square(std::vector<Float>& of) const { return {of.data(), n_, n_}; }
  MatrixOf<Float> values(std::vector<Float>& of) const { return {of.data(), n_, head_.d_value}; }
  MatrixOf<Float> keys(std::vector<Float>& of) const { return {of.data(), n_, head_.d_key}; }

  const DeltaHead<Float>& head_;
  std::int64_t begin_ = 0, n_ = 0;
  MatrixOf<const Float> q_{nullptr, 0, 0}, k_{nullptr, 0, 0};  // (n, d_key)
  std::vector<Float> fade_, p_, a_, d_p_, d_a_;                // (n, n)
  std::vector<Float> from_start_, to_end_;                     // (n): e^{b_t}, e^{b_n - b_t}
  std::vector<Float> u_, d_z_, other_;                         // (n, d_value)
  std::vector<Float> d_read_, d_written_;                      // (n, d_key)
};

}  // namespace

template <class Float> void delta_forward(const DeltaHead<Float>& head, Float* state, Float* o) {
  Chunks<Float> chunks(head);
  std::vector<Float> z(static_cast<std::size_t>(std::min(kDeltaChunk, head.steps) * head.d_value));
  for (std::int64_t begin = 0; begin < head.steps; begin += kDeltaChunk)
    chunks.forward(begin, state, o, z.data());
}

template <class Float>
void delta_backward(
    const DeltaHead<Float>& head, Float* state, Float* d_state, const DeltaGradients<Float>& g) {
  Chunks<Float> chunks(head);
  const auto size = head.d_key * head.d_value;
  std::vector<Float> z(static_cast<std::size_t>(head.steps * head.d_value)),
      before(static_cast<std::size_t>(head.chunks() * size));
  for (std::int64_t i = 0; i < head.chunks(); ++i) {
    std::copy_n(state, size, before.data() + i * size);
    chunks.forward(i * kDeltaChunk, state, nullptr, z.data() + i * kDeltaChunk * head.d_value);
  }
  const Float* after = state;
  for (std::int64_t i = head.chunks() - 1; i >= 0; --i) {
    const Float* const start = before.data() + i * size;
    chunks.backward(
        i * kDeltaChunk, start, after, z.data() + i * kDeltaChunk * head.d_value, d_state, g);
    after = start;
  }
}

template void delta_forward(const DeltaHead<float>&, float*, float*);
template void delta_forward(const DeltaHead<double>&, double*, double*);
template void delta_backward(const DeltaHead<float>&, float*, float*, const DeltaGradients<float>&);
template void delta_backward(
    const DeltaHead<double>&, double*, double*, const DeltaGradients<double>&);

}  // namespace nn
