#pragma once
// The texts that Generator samples.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rng.h"
#include "infer/generate/device_draw.h"
#include "infer/generate/generator.h"

namespace infer {

// A text that is being sampled.
struct Generator::Growing {
  core::Rng rng;
  StopText text;
  text::StreamDecoder decoder;
  Sample sample;
  std::int64_t most;  // in tokens
  DrawOptions draw;
  std::size_t reported = 0;                 // bytes of the text already reported
  std::vector<std::int64_t> span = {};      // proposed continuation of its last sampled token
  std::int64_t trust = 1;                   // guesses to read ahead: as many as were right lately
  std::shared_ptr<const Start> start = {};  // of an arrival: owns the stop strings
};

// The next token of a text.
struct Generator::Word {
  DrawnWord drawn;
  bool spanned = false;  // whether it continues the text's span
};

}  // namespace infer
