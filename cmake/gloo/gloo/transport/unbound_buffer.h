#pragma once
// Declarations alone: see cmake/gloo/README.
namespace gloo::transport {
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace gloo::transport
