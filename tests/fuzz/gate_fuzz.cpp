// Lines of any bytes are gates or give an Error{usage}. Writing and reading a gate again preserves
// it.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "fuzz/target.h"
#include "infer/sources/gate.h"
#include "nn/base/torch.h"

FUZZ_TARGET(gate)(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] != '\n') {
      line += static_cast<char>(data[i]);
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  if (!line.empty()) lines.push_back(line);
  infer::Gate gate;
  try {
    gate = infer::parse_gate(lines);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::usage) std::abort();
    return;
  }
  const auto texts = infer::to_texts(gate);
  if (infer::to_texts(infer::parse_gate(texts)) != texts) std::abort();
}
