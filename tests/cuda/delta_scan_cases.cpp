#include "kernel_cases.h"
#include "nn/kernels/delta_scan_kernels.h"
#include "nn/kernels/float_product.h"
#include "on_device.h"

namespace {

// c = keep c + scale a b for column-major matrices, for the CPU's version: no BLAS is linked here.
template <class Float>
void plain_product(bool a_turned, bool b_turned, int m, int n, int k, Float scale, const Float* a,
    int a_stride, const Float* b, int b_stride, Float keep, Float* c, int c_stride) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += double(a_turned ? a[i * a_stride + l] : a[l * a_stride + i]) *
               double(b_turned ? b[l * b_stride + j] : b[j * b_stride + l]);
      Float& to = c[j * c_stride + i];
      to = (keep == 0 ? 0 : keep * to) + scale * Float(sum);
    }
}

}  // namespace

extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
    const int* k, const float* alpha, const float* a, const int* lda, const float* b,
    const int* ldb, const float* beta, float* c, const int* ldc) {
  plain_product(*transpose_a == 'T', *transpose_b == 'T', *m, *n, *k, *alpha, a, *lda, b, *ldb,
      *beta, c, *ldc);
}
extern "C" void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
    const int* k, const double* alpha, const double* a, const int* lda, const double* b,
    const int* ldb, const double* beta, double* c, const int* ldc) {
  plain_product(*transpose_a == 'T', *transpose_b == 'T', *m, *n, *k, *alpha, a, *lda, b, *ldb,
      *beta, c, *ldc);
}

namespace cuda_test {
namespace {

struct Shape {
  std::int64_t rows, steps, heads, d_key, d_value;
};

// Inputs and results of one scan, on the host.
struct Numbers {
  Floats q, k, v, beta, log_decay, state, d_o, d_state;
  Floats o, d_q, d_k, d_v, d_beta, d_log_decay;
};

// Returns random numbers with keys of length `length` and decays from e^-strength to 1.
Numbers numbers_of(const Shape& size, float length, float strength) {
  const auto [rows, steps, heads, d_key, d_value] = size;
  const auto all = std::size_t(rows * steps * heads), keys = all * std::size_t(d_key),
             values = all * std::size_t(d_value),
             states = std::size_t(rows * heads * d_key * d_value);
  Numbers x{random_floats(keys, 1), random_floats(keys, 2), random_floats(values, 3),
      random_floats(all, 4, 0, 1), random_floats(all, 5, -strength, 0), random_floats(states, 6),
      random_floats(values, 7), random_floats(states, 8), Floats(values), Floats(keys),
      Floats(keys), Floats(values), Floats(all), Floats(all)};
  for (std::size_t i = 0; i < keys; i += std::size_t(d_key)) {
    float square = 1e-6F;
    for (std::size_t c = i; c < i + std::size_t(d_key); ++c) square += x.k[c] * x.k[c];
    for (std::size_t c = i; c < i + std::size_t(d_key); ++c) x.k[c] *= length / std::sqrt(square);
  }
  return x;
}

// state becomes the last state, and d_state the gradient of the first state.
void on_host(const Shape& size, Numbers& x) {
  for (std::int64_t row = 0; row < size.rows; ++row)
    for (std::int64_t head = 0; head < size.heads; ++head) {
      const auto step = row * size.steps * size.heads + head, keys = step * size.d_key,
                 values = step * size.d_value,
                 state = (row * size.heads + head) * size.d_key * size.d_value;
      const nn::DeltaHead<float> of{size.steps, size.d_key, size.d_value, size.heads * size.d_key,
          size.heads * size.d_value, size.heads, x.q.data() + keys, x.k.data() + keys,
          x.v.data() + values, x.beta.data() + step, x.log_decay.data() + step};
      Floats spent(x.state.begin() + state, x.state.begin() + state + size.d_key * size.d_value);
      nn::delta_forward(of, x.state.data() + state, x.o.data() + values);
      nn::delta_backward(of, spent.data(), x.d_state.data() + state,
          {x.d_o.data() + values, x.d_q.data() + keys, x.d_k.data() + keys, x.d_v.data() + values,
              x.d_beta.data() + step, x.d_log_decay.data() + step});
    }
}

// Embeds a head's matrix at index `at` of `of`. The other matrices are NaN.
Floats among(const Floats& x, std::int64_t size, std::int64_t of, std::int64_t at) {
  Floats all(x.size() * std::size_t(of), NAN);
  for (std::int64_t i = 0; i < std::ssize(x) / size; ++i)
    std::copy_n(x.begin() + i * size, size, all.begin() + (i * of + at) * size);
  return all;
}
Floats taken(const Floats& all, std::int64_t size, std::int64_t of, std::int64_t at) {
  Floats x(all.size() / std::size_t(of));
  for (std::int64_t i = 0; i < std::ssize(x) / size; ++i)
    std::copy_n(all.begin() + (i * of + at) * size, size, x.begin() + i * size);
  return x;
}

Numbers on_device(const Shape& size, const Numbers& x) {
  OnDevice<float> q(x.q), k(x.k), v(x.v), beta(x.beta), log_decay(x.log_decay), state(x.state),
      d_o(x.d_o);
  const nn::DeltaInputs in{size.rows, size.steps, size.heads, size.d_key, size.d_value, q.data(),
      k.data(), v.data(), beta.data(), log_decay.data()};
  const auto unwritten = [](std::size_t n) { return OnDevice<float>::unwritten(n); };
  auto o = unwritten(x.o.size()), d_q = unwritten(x.q.size()), d_k = unwritten(x.k.size()),
       d_v = unwritten(x.v.size()), d_beta = unwritten(x.beta.size()),
       d_log_decay = unwritten(x.beta.size()), z = unwritten(x.v.size()),
       d_u = unwritten(x.v.size()), squares = unwritten(std::size_t(nn::delta_squares(in)));
  require(
      nn::delta_forward_cuda(in, squares.data(), state.data(), o.data(), nullptr) == 0, "forward");
  const auto matrix = size.d_key * size.d_value, places = in.chunks() + 1;
  OnDevice<float> states(among(x.state, matrix, places, 0)),
      d_states(among(x.d_state, matrix, places, places - 1));
  auto again = unwritten(std::size_t(nn::delta_squares(in)));
  require(nn::delta_backward_cuda(in,
              {again.data(), states.data(), d_states.data(), z.data(), d_u.data()},
              {d_o.data(), d_q.data(), d_k.data(), d_v.data(), d_beta.data(), d_log_decay.data()},
              nullptr) == 0,
      "backward");
  Numbers out = x;
  out.o = o.back();
  out.state = state.back();
  out.d_state = taken(d_states.back(), matrix, places, 0);
  out.d_q = d_q.back();
  out.d_k = d_k.back();
  out.d_v = d_v.back();
  out.d_beta = d_beta.back();
  out.d_log_decay = d_log_decay.back();
  return out;
}

double delta_gap(const Shape& size, float length, float strength) {
  Numbers want = numbers_of(size, length, strength);
  const Numbers got = on_device(size, want);
  on_host(size, want);
  constexpr double kClose = 2e-5;
  Worst worst;
  worst(gap(got.o, want.o) / kClose);
  worst(gap(got.state, want.state) / kClose);
  worst(gap(got.d_state, want.d_state) / kClose);
  worst(gap(got.d_q, want.d_q) / kClose);
  worst(gap(got.d_k, want.d_k) / kClose);
  worst(gap(got.d_v, want.d_v) / kClose);
  worst(gap(got.d_beta, want.d_beta) / kClose);
  worst(gap(got.d_log_decay, want.d_log_decay) / (5 * kClose));
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> delta_scan_cases() {
  return {{"delta rule 2 x 70 x 1 x 5 x 37",
              [] {
                return delta_gap({2, 70, 1, 5, 37}, 1, 0.5F);
              }},
      {"delta rule, keys of 40",
          [] {
            return delta_gap({1, 33, 2, 40, 35}, 1, 0);
          }},
      {"delta rule, one of each",
          [] {
            return delta_gap({1, 1, 1, 1, 1}, 1, 1);
          }},
      {"delta rule, whole chunks that fade", [] {
         return delta_gap({1, 64, 1, 32, 32}, 0.5F, 50);
       }}};
}

}  // namespace cuda_test
