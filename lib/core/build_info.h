#pragma once
// Facts about this build, for --version and --build-info. cmake/BuildInfo.cmake generates the files
// that define them.

namespace core::build {

/// The version as a number: "0.1.0".
extern const char* const kVersion;
/// The short git revision, with the suffix "-dirty" if files were modified, or "unknown".
extern const char* const kGit;
/// The compiler and its version: "GNU 12.2.0".
extern const char* const kCompiler;
/// The build type and the compiler flags.
extern const char* const kFlags;
/// LibTorch's version, or "none".
extern const char* const kTorch;
/// FAISS's version and build, or "none".
extern const char* const kFaiss;
/// The toolkit and the architectures that libtessera_cuda.so is built with, or "none".
extern const char* const kCuda;
/// The other libraries and their versions.
extern const char* const kLibraries;

}  // namespace core::build
