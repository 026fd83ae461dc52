// Torch and FAISS in one process, linked as the programs are: one OpenMP runtime, and the process's
// own matrix product (nn/product/sgemm.h), which forwards to torch's. (With OpenBLAS first, torch's
// own product runs at a fifth of its speed.)
#include <dlfcn.h>
#ifdef TESSERA_FAISS
#include <faiss/IndexFlat.h>
#include <faiss/VectorTransform.h>
#endif

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#ifdef TESSERA_SGEMM
#include "nn/product/sgemm.h"
#endif

extern "C" void sgesvd_();

namespace {

std::string object_of(void* symbol) {
  Dl_info info{};
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "nothing";
}

// Returns the files mapped into this process with the name of an OpenMP runtime.
std::set<std::string> openmp_runtimes() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const char* openmp : {"libgomp", "libomp", "libiomp"}) {
      if (name.rfind(openmp, 0) == 0) found.insert(path);
    }
  }
  return found;
}

bool is_torch(const std::string& object) {
  return object.substr(object.rfind('/') + 1) == "libtorch_cpu.so";
}

int failures = 0;

void expect(bool holds, const std::string& what) {
  std::printf("%s: %s\n", holds ? "ok" : "FAILED", what.c_str());
  if (!holds) ++failures;
}

}  // namespace

int main() {
  // Both libraries work, with threads, a matrix product and (for PCA) LAPACK.
  const auto a = torch::randn({256, 64});
  const auto product = torch::mm(a, a.t());
  expect(product.size(0) == 256, "torch multiplies");
#ifdef TESSERA_FAISS
  faiss::IndexFlatL2 index(64);
  index.add(256, a.data_ptr<float>());
  std::vector<float> distances(256);
  std::vector<int64_t> labels(256);
  index.search(256, a.data_ptr<float>(), 1, distances.data(), labels.data());
  expect(labels[0] == 0 && labels[255] == 255, "FAISS finds each vector itself");
  faiss::PCAMatrix pca(64, 8);
  pca.train(256, a.data_ptr<float>());
  expect(pca.is_trained, "FAISS finds LAPACK");
  const std::string svd = object_of(reinterpret_cast<void*>(&sgesvd_));
  expect(svd != "nothing", "sgesvd_ comes from " + svd);
#endif

#ifdef TESSERA_SGEMM
  void* const own = reinterpret_cast<void*>(&sgemm_);
  expect(dlsym(RTLD_DEFAULT, "sgemm_") == own && !is_torch(object_of(own)),
      "the process's sgemm_ is its own: " + object_of(own));
  const std::string next = object_of(reinterpret_cast<void*>(nn::blas_sgemm()));
  expect(is_torch(next), "it hands on to torch's: " + next);
#endif

  const auto runtimes = openmp_runtimes();
  std::string list;
  for (const auto& path : runtimes) list += " " + path;
  expect(runtimes.size() == 1, "one OpenMP runtime in the process:" + list);
  return failures == 0 ? 0 : 1;
}
