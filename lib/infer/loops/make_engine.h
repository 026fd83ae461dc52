#pragma once
// Selects the decoding engine of a model.
// Decodes a model on a device with its own modules. Keys and values are in rings and other state is
// in tensors with fixed addresses, so each decoding step launches the same operators on the same
// memory, without synchronisation.

#include "infer/decode/decode_engine.h"
#include "infer/decode/decode_weights.h"
#include "model/folder.h"
#include "nn/base/fixed_sequence.h"
#include "nn/base/runtime.h"
#include "nn/layers/kv_cache.h"

namespace infer {

/// Returns the fastest engine for the model: TransformerEngine or LayeredEngine on the CPU,
/// DeviceEngine on a device, ModuleEngine otherwise. `model` must outlive it, with unchanged
/// weights and layer reach. `record`: see nn::FixedSequence. `packed` (null: none) has the matrices
/// that were taken from the model. Throws Error{unavailable} for a precision that the model's own
/// modules do not support.
std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
    bool record = true, const PackedModel* packed = nullptr);

/// Loads a model for decoding on the CPU or a device (see model::load()) with weights of the
/// type_to_load(). Packs those of a transformer on the CPU as they are read, unless they are
/// float32; make_engine() then needs packed_in() of the result. `others`: type of the weights that
/// are not packed; without it, the files' type, bfloat16 or float32. Throws Error{usage} for type
/// file, which float32 accompanies, with another model than a GGUF file, a device or an adapter.
model::Loaded load_to_decode(const std::string& path, torch::Device device, const std::string& type,
    const std::string& adapter = {}, std::optional<torch::Dtype> others = std::nullopt);
/// Returns the weights that load_to_decode() packed; null: none.
const PackedModel* packed_in(const model::Loaded& loaded);
/// Returns what --dtype `auto` stands for when a model is loaded, and any other type as it is: file
/// for a GGUF file with matrices in blocks, if all of these have products (block_format()), on the
/// CPU and without an adapter; else float32.
std::string type_to_load(const std::string& type, const std::string& path, torch::Device device,
    const std::string& adapter = {});
/// Returns what it stands for with a loaded model.
std::string type_loaded(const std::string& type, const model::Loaded& loaded);
/// Options of a program that scores with weights of each type of load_with_type().
struct ScoringOptions : nn::ComputeOptions {
  ScoringOptions() { precision = "auto"; }
  void fields(core::FieldList& f);
};
/// Returns whether a type of --dtype also packs weights for scoring: int8, file.
inline bool packs(const std::string& type) { return type == "int8" || type == "file"; }
/// Loads a model with weights of the type_to_load(): if packs(), as load_to_decode(), with the
/// other weights float32; else as model::load().
model::Loaded load_with_type(const std::string& path, torch::Device device, const std::string& type,
    const std::string& adapter = {});
/// Does the same for scoring windows: if packs(), an engine encodes those of the model's
/// architecture, whose forward() supports one State at a time, in order, and no gradient.
model::Loaded load_to_score(const std::string& path, torch::Device device, const std::string& type,
    const std::string& adapter = {});

/// Rings hold at least 64 tokens for each row and double when they are full.
class DeviceEngine : public Engine {
 public:
  /// Returns whether the model supports decoding with rings on this device.
  static bool fits(const nn::Model& model, torch::Device device);
  /// `record`: records the step of one token for each row and replays it (nn::FixedSequence) until
  /// rows, rings or sources change.
  DeviceEngine(nn::Model& model, torch::Device device, bool record = true);

  void open(std::int64_t rows) override;
  /// Throws Error{bad_data} if learned positions run out.
  nn::Hidden feed(const std::vector<RowInput>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  bool takes_back() const override { return true; }
  /// If every token changes the carried state, mark() copies the state, and roll_back() feeds the
  /// kept tokens again.
  void mark() override;
  void roll_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *model_.head; }
  bool recorded() const { return token_.recorded(); }

 private:
  struct Row {
    std::int64_t begin = 0, end = 0;  // positions of the stored tokens
    std::int64_t held() const { return end - begin; }
  };
  struct Marked {
    bool unused;
    std::vector<Row> rows;
    nn::State kept;
    std::vector<RowInput> feeds;  // of the call after mark()
  };
  void start_rows(const std::vector<RowInput>& feeds);
  void make_room(std::int64_t steps);
  torch::Tensor numbers(const std::vector<RowInput>& feeds, std::int64_t steps);
  nn::Hidden run(const torch::Tensor& numbers, bool full);
  nn::Hidden run_token(const torch::Tensor& numbers);
  void keep(const nn::State& made) { moved_ |= !kept_.take(made); }

  nn::Model& model_;
  nn::RingDecoder& decoder_;
  torch::Device device_;
  std::vector<Row> rows_;
  bool unused_ = true;  // true until the first call after open()
  nn::KvRing ring_;
  nn::FixedState kept_;
  bool moved_ = false;       // a tensor of kept_ has changed its address since token_ was reset
  nn::FixedSequence token_;  // the step of one token for each row: from now_ to next_
  torch::Tensor now_;
  nn::Hidden next_;
  std::optional<Marked> marked_;
};

}  // namespace infer
