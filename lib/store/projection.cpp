#include "store/projection.h"

#include "store/npy.h"
#include "store/projection_kernels.h"

extern "C" void dsyev_(const char* what, const char* triangle, const int* n, double* matrix,
    const int* stride, double* values, double* work, const int* work_size, int* failed);

namespace store {
namespace {

constexpr std::uint64_t kSampleRows = 16'384, kMostSampleRows = 65'536, kRowsOfNumber = 64;

// Returns evenly spaced rows of the keys.
std::vector<float> spread_rows(std::span<const Half> keys, std::uint64_t width) {
  const std::uint64_t rows = keys.size() / width;
  const std::uint64_t n =
      std::min({rows, std::max(kSampleRows, kRowsOfNumber * width), kMostSampleRows});
  std::vector<float> sample(n * width);
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto row = static_cast<std::uint64_t>(static_cast<unsigned __int128>(rows) * i / n);
    to_float(&keys[row * width], std::span(sample).subspan(i * width, width));
  }
  return sample;
}

void centre(std::vector<float>& rows, std::uint64_t width) {
  std::vector<double> mean(width);
  for (std::size_t i = 0; i < rows.size(); ++i) mean[i % width] += rows[i];
  const auto n = static_cast<double>(rows.size()) / static_cast<double>(width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] -= static_cast<float>(mean[i % width] / n);
}

}  // namespace

Eigen symmetric_eigen(std::vector<double> matrix, std::size_t n) {
  // LAPACK stores columns: it sees the upper triangle as the lower one and returns vectors as rows.
  const auto size = static_cast<int>(n), work_size = 64 * size;
  std::vector<double> values(n), work(64 * n);
  int failed = 0;
  dsyev_("V", "L", &size, matrix.data(), &size, values.data(), work.data(), &work_size, &failed);
  if (failed != 0) core::bug("LAPACK's dsyev returned {}", failed);
  std::ranges::reverse(values);
  for (std::size_t i = 0; i < n / 2; ++i)
    std::swap_ranges(&matrix[i * n], &matrix[i * n] + n, &matrix[(n - 1 - i) * n]);
  return {std::move(values), std::move(matrix)};
}

Projection::Projection(std::vector<Half> matrix, std::uint64_t from, std::uint64_t to)
    : from_(from), to_(to), matrix_(std::move(matrix)), floats_(matrix_.size()) {
  to_float(matrix_.data(), floats_);
}

Projection Projection::learn(
    std::span<const Half> keys, std::uint64_t width, std::uint64_t to, Metric metric) {
  auto sample = spread_rows(keys, width);
  if (sample.size() / width < to)
    core::bad_data(
        "--keys pca:{}: needs at least as many rows; there are {}", to, sample.size() / width);
  if (metric == Metric::l2) centre(sample, width);
  std::vector<double> sums(width * width);
  add_products(sample.data(), sample.size() / width, width, sums.data());
  const Eigen found = symmetric_eigen(std::move(sums), width);
  const std::vector<float> first(
      found.vectors.begin(), found.vectors.begin() + static_cast<std::ptrdiff_t>(to * width));
  std::vector<Half> matrix(first.size());
  to_half(first.data(), matrix);
  return {std::move(matrix), width, to};
}

std::vector<float> Projection::apply(std::span<const float> in) const {
  std::vector<float> out(in.size() / from_ * to_);
  project_rows(in.data(), in.size() / from_, floats_.data(), from_, to_, out.data());
  return out;
}

core::Digest write_projection(const std::string& path, const Projection& projection) {
  NpyWriter writer(path, "<f2", 0, projection.from(), true);
  writer.write(projection.matrix());
  writer.commit();
  return core::hash128(std::as_bytes(projection.matrix()));
}

Projection read_projection(
    const std::string& path, std::uint64_t from, std::uint64_t to, const std::string& hash) {
  const NpyArray array(path, "<f2", to, from, true);
  const auto matrix = array.values<Half>();
  if (core::hash128(std::as_bytes(matrix)).hex() != hash)
    core::bad_data("{}: corrupt file: checksum mismatch", path);
  return {{matrix.begin(), matrix.end()}, from, to};
}

}  // namespace store
