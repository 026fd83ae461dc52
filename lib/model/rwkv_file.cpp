#include "model/rwkv_file.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include "model/export_model.h"
#include "model/families/rwkv7.h"
#include "nn/arch/mixer.h"

namespace model {
namespace {

// The keys of rwkv7_keys() that are a size of a matrix.
struct SizeKey {
  const char *key, *tensor;
  std::size_t dimension;
};
constexpr SizeKey kSizes[] = {{"vocab_size", kRwkvEmbedding, 0}, {"hidden_size", kRwkvEmbedding, 1},
    {"head_dim", "blocks.0.att.r_k", 1}, {"intermediate_size", "blocks.0.ffn.key.weight", 0}};

std::int64_t size_of(const TensorMap& tensors, const SizeKey& of, const std::string& origin) {
  const auto& tensor = named_tensor(tensors, of.tensor, origin);
  if (tensor.dim() != 2)
    core::bad_data("{}: tensor {} has {} dimensions, not 2", origin, of.tensor, tensor.dim());
  return tensor.sizes()[of.dimension];
}

// Adds zeros to both matrices of the low-rank map of width `d` whose first one is `name`.
void add_ranks(TensorMap& tensors, const std::string& name, std::int64_t d, std::int64_t ranks,
    const std::string& origin) {
  auto& down = tensors.at(name);
  const auto partner = name.substr(0, name.size() - 1) + "2";
  auto& up = named_tensor(tensors, partner, origin);
  if (down.dim() != 2 || up.dim() != 2 || down.size(0) != d || up.size(1) != d)
    return;  // refused with all other shapes
  const auto rank = down.size(1);
  if (up.size(0) != rank)
    core::bad_data(
        "{}: {} has {} columns, but {} has {} rows", origin, name, rank, partner, up.size(0));
  if (rank > ranks)
    core::bad_data("{}: {} has rank {}, but only up to {} is supported at this width", origin, name,
        rank, ranks);
  down = torch::constant_pad_nd(down, {0, ranks - rank});
  up = torch::constant_pad_nd(up, {0, 0, 0, ranks - rank});
}

// Writes a dict as torch.save does. (What torch itself offers adds types to the dict, which
// torch.load refuses by default.)
void write_pickled(core::ByteSink& sink, const NamedTensors& tensors) {
  c10::Dict<std::string, torch::Tensor> dict;
  for (const auto& [name, tensor] : tensors) dict.insert(name, tensor.contiguous());
  std::string pickle;
  torch::jit::Pickler pickler(
      [&](const char* bytes, std::size_t size) { pickle.append(bytes, size); }, nullptr, nullptr,
      nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  caffe2::serialize::PyTorchStreamWriter archive([&](const void* bytes, std::size_t size) {
    sink.write(std::string_view(static_cast<const char*>(bytes), size));
    return size;
  });
  archive.writeRecord("data.pkl", pickle.data(), pickle.size());
  std::size_t key = 0;
  for (const auto& tensor : pickler.tensorData()) {
    const auto storage = torch::jit::getWriteableTensorData(tensor);
    archive.writeRecord("data/" + std::to_string(key++), storage.data(), storage.sizeInBytes());
  }
  archive.writeEndOfFile();
}

}  // namespace

Config rwkv_config(TensorMap& tensors, const std::string& origin) {
  if (!tensors.contains("blocks.0.att.r_k"))
    core::bad_data(
        "{}: an RWKV of another version than 7: it has no tensor blocks.0.att.r_k", origin);
  std::int64_t layers = 0;
  while (tensors.contains(fmt::format("blocks.{}.ln1.weight", layers))) ++layers;
  core::Json config = {{"num_hidden_layers", layers}};
  for (const auto& of : kSizes) config[of.key] = size_of(tensors, of, origin);
  Config read;
  read.family = &rwkv_file_family();
  read.read_from = "the first block";
  read.options = family_options(*read.family, config, origin, &read.vocabulary);
  const auto d = read.options.shape.d_model;
  const auto ranks = nn::rwkv7_ranks(d);
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (const auto name = fmt::format("blocks.{}.att.{}1", layer, "wavg"[i]);
          tensors.contains(name) && !is_buffer(read.family, name))
        add_ranks(tensors, name, d, ranks[i], origin);
  return read;
}

void export_rwkv(const Loaded& loaded, const std::string& dtype, const std::string& path) {
  const Family& family = rwkv_file_family();
  const auto model = in_shape_of(family, loaded.model, loaded.folder);
  set_type(*model, dtype, loaded.stored_type);
  auto tensors = weights_to_write(*model, &family);
  if (model->options.vocabulary.tied) tensors.emplace_back("head.weight", tensors[0].second);
  core::Output out(path);
  if (path.ends_with(".safetensors")) {
    write_safetensors(out, tensors);
  } else {
    write_pickled(out, tensors);
  }
  out.commit();
}

}  // namespace model
