#include "core/build_info.h"

namespace core::build {

const char* const kVersion = "0.1.0";
const char* const kGit = "unknown";
const char* const kCompiler = __VERSION__;
const char* const kFlags = "";
const char* const kTorch = "none";
const char* const kFaiss = "none";
const char* const kCuda = "none";

}  // namespace core::build
