#pragma once
// What this build is, for --version and --build-info; defined in files that cmake/BuildInfo.cmake
// makes.

namespace core::build {

extern const char* const kVersion;  ///< "0.1.0"
/// Short revision, "-dirty" after it where files were changed; or "unknown".
extern const char* const kGit;
extern const char* const kCompiler;   ///< "GNU 12.2.0"
extern const char* const kFlags;      ///< build type and compiler flags
extern const char* const kTorch;      ///< LibTorch's version, or "none"
extern const char* const kFaiss;      ///< FAISS's version and build, or "none"
extern const char* const kCuda;       ///< what libtessera_cuda.so is made with and for, or "none"
extern const char* const kLibraries;  ///< the other libraries and their versions

}  // namespace core::build
