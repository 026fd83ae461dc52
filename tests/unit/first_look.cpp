// For test binaries with torch: does what nn::start does before a program has a second thread.
#include "nn/base/torch.h"

namespace {

[[maybe_unused]] const bool looked = torch::ones({1}).exp().defined();

}  // namespace
