#pragma once
// GGUF files of version 3, written front to back (gguf_file.h has the layout).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/io.h"
#include "model/gguf/gguf_blocks.h"

namespace model {

using GgufValue = std::variant<bool, std::uint32_t, float, std::string, std::vector<std::string>,
                               std::vector<std::int32_t>, std::vector<float>, std::vector<bool>>;
/// Metadata in the order to write them.
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// A tensor to be written.
struct GgufNewTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< the outermost dimension first
  const GgufType* type;             ///< whole blocks in each row
  std::size_t bytes() const;
};

/// Writes the file; numbers(i) is asked for the elements of each tensor in turn.
/// Throws Error{bug} for rows that are no whole blocks, Error{io}.
void write_gguf(core::ByteSink& sink, const GgufMetadata& metadata,
                const std::vector<GgufNewTensor>& tensors,
                const std::function<std::vector<float>(std::size_t)>& numbers);

}  // namespace model
