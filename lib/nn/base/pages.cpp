#include "nn/base/pages.h"

#include <unistd.h>

#include "core/mapped_file.h"

namespace nn {
namespace {

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

std::uintptr_t first_byte(const torch::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
}

void advise(std::uintptr_t begin, std::uintptr_t end, int advice) {
  // A refusal costs time, not correctness.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void drop_pages(const torch::Tensor& part) {
  const auto page = page_bytes(), begin = first_byte(part), end = begin + part.nbytes();
  advise((begin + page - 1) / page * page, end / page * page, MADV_DONTNEED);
}

void expect_any_row(const torch::Tensor& table) {
  const auto page = page_bytes(), begin = first_byte(table);
  advise(begin / page * page, begin + table.nbytes(), MADV_RANDOM);
}

void read_rows_ahead(const torch::Tensor& table, const torch::Tensor& rows) {
  if (!table.is_cpu() || !rows.is_cpu() || table.numel() == 0) return;
  const auto page = page_bytes(), begin = first_byte(table);
  const auto row_bytes = table.nbytes() / static_cast<std::size_t>(table.size(0));
  const auto flat = rows.contiguous();
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> spans;  // first page, and one behind
  for (const auto* row = flat.const_data_ptr<std::int64_t>();
       row != flat.const_data_ptr<std::int64_t>() + flat.numel(); ++row) {
    const auto from = begin + static_cast<std::uintptr_t>(*row) * row_bytes;
    spans.emplace_back(from / page, (from + row_bytes + page - 1) / page);
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 0; i < spans.size();) {
    auto [first, behind] = spans[i++];
    for (; i < spans.size() && spans[i].first <= behind; ++i)
      behind = std::max(behind, spans[i].second);
    advise(first * page, behind * page, MADV_WILLNEED);
  }
}

void move_to_huge_pages(std::span<const torch::Tensor> tensors) {
  constexpr std::size_t kAlignment = 64;
  const auto room = [](const torch::Tensor& tensor) {
    return (tensor.nbytes() + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::vector<torch::Tensor> moved;
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) {
    if (!tensor.is_cpu() || !tensor.is_contiguous() || tensor.storage().use_count() > 1 ||
        tensor.storage().nbytes() != tensor.nbytes())
      continue;
    moved.push_back(tensor);
    bytes += room(tensor);
  }
  if (bytes == 0) return;
  const auto block = std::make_shared<core::HugeArray<std::byte>>(bytes);
  std::size_t at = 0;
  for (auto& tensor : moved) {
    tensor.set_data(torch::from_blob(
        &(*block)[at], tensor.sizes(), [block](void*) {}, tensor.options().requires_grad(false)));
    at += room(tensor);
  }
}

}  // namespace nn
