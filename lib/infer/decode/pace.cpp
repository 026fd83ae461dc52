#include "infer/decode/pace.h"

namespace infer {

void PieceSize::took(std::int64_t tokens, std::chrono::duration<double> time, bool shared) {
  const std::chrono::duration<double> wanted = shared ? kShared : kAlone;
  const auto fitting = static_cast<double>(tokens) * (wanted / std::max(time, wanted / 1e6));
  // A piece that is shorter than it may be says only that so many tokens fit.
  const auto least = time <= wanted ? tokens_ : 1;
  tokens_ = std::clamp(
      static_cast<std::int64_t>(fitting), std::min(least, tokens_), std::min(2 * tokens_, kMost));
}

std::int64_t Pace::begin(Kind kind) {
  kind_ = kind;
  begun_ = std::chrono::steady_clock::now();
  return size().tokens();
}

void Pace::end(std::int64_t tokens) {
  const auto time = std::chrono::steady_clock::now() - begun_;
  const auto kind = kind_;
  const bool shared = between_();
  kind_ = kind;  // another work of this pace may have run between
  size().took(tokens, time, shared);
}

}  // namespace infer
