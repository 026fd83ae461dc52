#include "model/tensor_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace model {

std::int64_t TensorEntry::elements() const {
  std::int64_t n = 1;
  for (const auto dimension : shape) n *= dimension;
  return n;
}

const TensorEntry& TensorReader::entry(const std::string& tensor) const {
  const auto found = entries_.find(tensor);
  if (found == entries_.end()) core::bad_data("{}: has no tensor {}", name(), tensor);
  return found->second;
}

std::int64_t TensorReader::elements() const {
  std::int64_t n = 0;
  for (const auto& [name, entry] : entries_) n += entry.elements();
  return n;
}

torch::Tensor TensorReader::read(const std::string& tensor) const {
  const TensorEntry& at = entry(tensor);
  auto out = torch::empty(at.shape, at.dtype);
  fill(tensor, 0, out);
  return out;
}

void TensorReader::read_into(const std::string& tensor, const torch::Tensor& out) const {
  const TensorEntry& at = entry(tensor);
  if (!out.is_contiguous() || !out.device().is_cpu() || out.scalar_type() != at.dtype ||
      out.sizes() != at.shape)
    core::bug("tensor {}: read into a tensor of another shape or type", tensor);
  fill(tensor, 0, out);
}

void TensorReader::read_rows_into(
    const std::string& tensor, std::int64_t first, const torch::Tensor& out) const {
  const TensorEntry& at = entry(tensor);
  auto shape = at.shape;
  if (shape.size() >= 2 && out.dim() >= 2) shape[0] = out.size(0);
  if (!out.is_contiguous() || !out.device().is_cpu() || out.scalar_type() != at.dtype ||
      shape.size() < 2 || out.sizes() != shape || first < 0 || first > at.shape[0] - shape[0])
    core::bug("tensor {}: read into rows of another shape or type", tensor);
  fill(tensor, first, out);
}

torch::Tensor map_tensor(const std::string& path, const TensorEntry& entry) {
  if (entry.begin == entry.end || entry.begin % c10::elementSize(entry.dtype) != 0) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = entry.begin / page * page, size = entry.end - first;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) core::fail_errno(core::Code::no_input, path + ": cannot open", errno);
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
      fd, static_cast<off_t>(first));
  const int error = errno;
  ::close(fd);
  if (mapped == MAP_FAILED) core::fail_errno(core::Code::io, path + ": cannot map it", error);
  return torch::from_blob(
      static_cast<std::byte*>(mapped) + (entry.begin - first), entry.shape,
      [mapped, size](void*) { ::munmap(mapped, size); }, entry.dtype);
}

}  // namespace model
