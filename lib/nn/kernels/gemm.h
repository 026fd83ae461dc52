#pragma once
// Row-major float32 matrix product on LibTorch's BLAS. In a parallel region it runs on one thread,
// so that loops over sequences can call it.

#include <atomic>
#include <cstdint>
#include <type_traits>

extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
    const int* k, const float* alpha, const float* a, const int* lda, const float* b,
    const int* ldb, const float* beta, float* c, const int* ldc);

namespace nn {

/// During its lifetime, large float32 products of the whole process round their factors to bfloat16
/// if `on`, which is faster with AVX-512 BF16 or AMX (nn/product/sgemm.h; none without
/// TESSERA_SGEMM). Sums stay float32. Objects may be nested, but not overlap on several threads.
class RoundedProducts {
 public:
  explicit RoundedProducts(bool on) : before_(on_.exchange(on)) {}
  ~RoundedProducts() { on_ = before_; }
  RoundedProducts(RoundedProducts&&) = delete;
  static bool on() { return on_; }

 private:
  static inline std::atomic<bool> on_ = false;
  bool before_;
};

/// A view of a matrix (rows, columns); row i begins at data + i * stride.
template <class Float> struct MatrixOf {
  Float* data;
  std::int64_t rows, columns, stride;

  MatrixOf(Float* first, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row_stride)
      : data(first), rows(n_rows), columns(n_columns), stride(row_stride) {}
  /// A contiguous matrix.
  MatrixOf(Float* first, std::int64_t n_rows, std::int64_t n_columns)
      : MatrixOf(first, n_rows, n_columns, n_columns) {}
  /// Converts a writable view into a read-only view.
  template <class Other>
  requires(std::is_const_v<Float>&& std::is_same_v<const Other, Float>)
      MatrixOf(const MatrixOf<Other>& m)
      : MatrixOf(m.data, m.rows, m.columns, m.stride) {}

  Float* row(std::int64_t i) const { return data + i * stride; }
  MatrixOf block(std::int64_t begin, std::int64_t n) const {
    return {row(begin), n, columns, stride};
  }
};
using Matrix = MatrixOf<const float>;
using MatrixOut = MatrixOf<float>;

/// A factor of a product: a matrix, or transposed(matrix).
struct Factor {
  Matrix matrix;
  bool turned = false;
  Factor(const Matrix& m) : matrix(m) {}
  Factor(const MatrixOut& m) : matrix(m) {}
  Factor(const Matrix& m, bool t) : matrix(m), turned(t) {}
};
inline Factor transposed(const Matrix& m) { return {m, true}; }

/// C = scale A B, or C += scale A B for Into::sum. Shapes: A (m, k), B (k, n), C (m, n).
enum class Into { fresh, sum };
inline void product(const Factor& a, const Factor& b, const MatrixOut& c, Into into = Into::fresh,
    float scale = 1) {
  // The BLAS is column-major: it computes C^T = B^T A^T, with transposed factors.
  const char turn_a = a.turned ? 'T' : 'N', turn_b = b.turned ? 'T' : 'N';
  const int m = static_cast<int>(c.rows), n = static_cast<int>(c.columns),
            k = static_cast<int>(a.turned ? a.matrix.rows : a.matrix.columns),
            a_stride = static_cast<int>(a.matrix.stride),
            b_stride = static_cast<int>(b.matrix.stride), c_stride = static_cast<int>(c.stride);
  const float keep = into == Into::sum ? 1 : 0;
  sgemm_(&turn_b, &turn_a, &n, &m, &k, &scale, b.matrix.data, &b_stride, a.matrix.data, &a_stride,
      &keep, c.data, &c_stride);
}

}  // namespace nn
