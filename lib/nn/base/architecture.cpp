#include "nn/base/architecture.h"

#include "core/error.h"

namespace nn {

void Architecture::set_reach(const LayerReach& reach) {
  if (reach.open()) return;
  core::fail(core::Code::usage,
             "--layer-memory, --clamp-length, --same-length: this architecture has no memory of "
             "layers; leave them out");
}

void Architecture::bound_slots(const SlotBound& bound) {
  if (bound.slots == 0) return;
  core::fail(core::Code::usage, "--context-slots: requires arch mosaic");
}

}  // namespace nn
