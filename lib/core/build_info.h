#pragma once
// What this build is; defined in a generated file.

namespace core::build {

extern const char* const kVersion;   ///< "0.1.0"
extern const char* const kGit;       ///< short revision, or "unknown"
extern const char* const kCompiler;  ///< "GNU 12.2.0"
extern const char* const kFlags;     ///< compiler flags
extern const char* const kTorch;     ///< LibTorch's version, or "none"
extern const char* const kFaiss;     ///< FAISS's version and build, or "none"
extern const char* const kCuda;      ///< CUDA toolkit's version, or "none"

}  // namespace core::build
