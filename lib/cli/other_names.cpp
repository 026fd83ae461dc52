#include "cli/other_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/options.h"

namespace cli {
namespace {

/// Options of these programs, of which the first that a program has is suggested, and their names
/// in other programs, separated by spaces.
struct Names {
  std::vector<std::string_view> here;
  std::string_view elsewhere;
};

const std::vector<Names>& table() {
  static const std::vector<Names> names = {
      {{"lr"}, "learning-rate max-lr peak-lr base-lr eta"},
      {{"batch", "batch-tokens"},
       "batch-size micro-batch-size train-batch-size per-device-train-batch-size "
       "per-device-eval-batch-size eval-batch-size bsz bs"},
      {{"max-tokens"},
       "max-new-tokens tokens num-tokens n-predict max-length max-gen-toks max-gen-len "
       "max-completion-tokens generate-tokens"},
      {{"batch-tokens"}, "max-tokens"},
      {{"layers"}, "n-layer n-layers num-layers num-hidden-layers decoder-layers depth"},
      {{"d-model"},
       "n-embd hidden-size hidden-dim embed-dim embedding-dim embedding-size emb-size embed model-dim "
       "dim n-embed decoder-embed-dim"},
      {{"heads"}, "n-head n-heads num-heads num-attention-heads decoder-attention-heads"},
      {{"kv-heads"}, "n-kv-head n-kv-heads num-kv-heads num-key-value-heads"},
      {{"d-ff"},
       "intermediate-size ffn-dim ffn-hidden-size d-inner n-inner dim-feedforward "
       "decoder-ffn-embed-dim"},
      {{"d-head"}, "head-dim"},
      {{"segment", "window", "context"},
       "block-size seq-len seq-length sequence-length max-seq-len max-seq-length ctx "
       "tokens-per-sample bptt n-ctx ctx-size context-length context-size context-window max-position-embeddings "
       "max-length"},
      {{"context"}, "n-positions"},
      {{"epochs"}, "num-epochs num-train-epochs n-epochs max-epoch max-epochs"},
      {{"steps"},
       "max-steps num-steps n-steps max-iters iters iterations max-update max-updates updates "
       "train-steps train-iters total-steps epochs"},
      {{"warmup"},
       "warmup-steps warmup-iters warmup-updates warmup-ratio lr-warmup-steps num-warmup-steps"},
      {{"schedule"}, "lr-scheduler lr-scheduler-type scheduler lr-schedule lr-decay-style"},
      {{"optimiser"}, "optimizer optim"},
      {{"clip"}, "grad-clip max-grad-norm clip-norm clip-grad gradient-clipping"},
      {{"weight-decay"}, "wd"},
      {{"beta1"}, "adam-beta1"},
      {{"beta2"}, "adam-beta2"},
      {{"epsilon"}, "adam-epsilon adam-eps eps"},
      {{"accumulate"},
       "gradient-accumulation-steps grad-accum grad-accumulation accumulation-steps update-freq"},
      {{"output"}, "output-dir out-dir out save-dir save-path output-path"},
      {{"model", "from"},
       "model-name-or-path model-path model-name pretrained pretrained-model checkpoint ckpt "
       "load-from model-dir restore-file"},
      {{"from"}, "init-from finetune-from-model base-model model"},
      {{"prompt"}, "start"},
      {{"system"}, "system-prompt system-message sys"},
      {{"chat"}, "conversation cnv interactive instruct"},
      {{"temperature"}, "temp sampling-temperature"},
      {{"top-k"}, "sampling-topk topk"},
      {{"top-p"}, "sampling-topp topp nucleus"},
      {{"length-penalty"}, "lenpen"},
      {{"samples", "count"}, "num-samples n-samples num-return-sequences nbest n num"},
      {{"beam"}, "num-beams beam-size beam-width beams"},
      {{"device"}, "gpu gpus cuda use-cuda n-gpu-layers device-map cpu no-cuda no-gpu use-cpu"},
      {{"precision"}, "dtype torch-dtype bf16 fp16 half mixed-precision amp autocast"},
      {{"dtype"},
       "precision weights torch-dtype bf16 fp16 half quantize quantization load-in-8bit"},
      {{"jobs"}, "threads num-threads n-threads num-workers nproc workers"},
      {{"log-every"}, "log-interval logging-steps log-freq"},
      {{"valid-every"}, "eval-interval eval-steps eval-every validate-interval val-interval"},
      {{"checkpoint-every"}, "save-steps save-interval save-every checkpoint-interval"},
      {{"keep"}, "save-total-limit keep-last-epochs keep-interval-updates"},
      {{"valid"},
       "val val-data valid-data validation validation-data validation-file valid-file eval-data "
       "eval-file"},
      {{"tokenizer"}, "tokenizer-path tokenizer-name tokenizer-file vocab vocab-file"},
      {{"vocab-size"}, "num-tokens n-vocab"},
      {{"seed"}, "random-seed rng-seed manual-seed"},
      {{"rope-theta"}, "rope-base rope-freq-base rotary-base"},
      {{"tied"},
       "tie-embeddings tie-word-embeddings weight-tying tie-weights share-decoder-input-output-embed "
       "share-all-embeddings"},
      {{"lora"}, "lora-r lora-rank r"},
      {{"lora-targets"}, "target-modules lora-target-modules"},
      {{"recompute"},
       "gradient-checkpointing activation-checkpointing grad-checkpoint checkpoint-activations"},
      {{"shard"}, "fsdp zero zero-stage deepspeed zero-sharding"},
      {{"ranks"}, "nproc-per-node world-size distributed-world-size num-processes local-rank"},
      {{"plan"}, "dry-run"},
      {{"tensorboard"}, "report-to tensorboard-logdir wandb wandb-project wandb-log"},
      {{"memory"}, "memories"},
      {{"datastore"},
       "store dstore dstore-dir dstore-filename dstore-path knn-store knnlm indexfile index-path"},
      {{"datastore-lambda"}, "lambda lmbda knn-lambda interpolation-weight"},
      {{"datastore-temperature"}, "knn-temp knn-temperature knn-sim-temp"},
      {{"nprobe"}, "probe n-probe"},
      {{"metric"}, "faiss-metric-type metric-type distance"},
      {{"listen"}, "host address bind ip"},
      {{"api-key-file"}, "api-key"},
      {{"k"}, "num-neighbors n-neighbors neighbors"},
      {{"format"}, "file-format input-format"},
      {{"output-format"}, "format outtype to"},
      {{"verbose"}, "debug log-verbose"},
      {{"json"}, "output-json as-json"},
      {{"quiet"}, "silent"},
  };
  return names;
}

/// What to say of names that no option of a program with the option `of` has.
struct Advice {
  std::string_view of, elsewhere, text;
};

constexpr Advice kAdvice[] = {
    {"checkpoint-every", "resume resume-from resume-from-checkpoint continue auto-resume",
     "rerun the command of a run to resume it"},
    {"checkpoint-every", "overwrite overwrite-output-dir", "-o takes a new folder"},
    {"top-p", "greedy do-sample no-sample",
     "--temperature 0 takes the most probable token, any other draws one"},
    {"top-p", "min-p typical typical-p top-a mirostat", "--top-k and --top-p limit the tokens"},
    {"top-p",
     "repeat-penalty repetition-penalty no-repeat-ngram-size frequency-penalty presence-penalty",
     "there is no penalty of repetitions"},
};

constexpr std::string_view kFiles =
    "data dataset train-data train-file data-path data-dir input input-file infile file files "
    "text-file prompt-file eval-dataset test-file";

// Returns true if `name` is one of the words.
bool is_among(std::string_view words, std::string_view name) {
  while (!words.empty()) {
    const auto end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == name) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::string hint_for_other_name(const std::string& flag, const std::vector<std::string>& flags,
                                bool takes_files) {
  std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  const auto has = [&](const std::string& one) {
    return std::find(flags.begin(), flags.end(), one) != flags.end();
  };
  if (has("--" + name)) return fmt::format("; did you mean --{}?", name);
  // A name may be the beginning of an option's and another program's name as well.
  const auto begun = core::named_in_part(name, flags);
  const bool begins = begun.starts_with(fmt::format("--{}-", name));
  for (const auto& [here, elsewhere] : table()) {
    if (!is_among(elsewhere, name)) continue;
    for (const auto one : here)
      if (const auto own = fmt::format("--{}", one); has(own))
        return begins && begun != own ? fmt::format("; did you mean {} or {}?", begun, own)
                                      : fmt::format("; did you mean {}?", own);
  }
  for (const auto& [of, elsewhere, text] : kAdvice)
    if (is_among(elsewhere, name) && has(fmt::format("--{}", of))) return fmt::format("; {}", text);
  return takes_files && is_among(kFiles, name) ? "; files are given without an option" : "";
}

}  // namespace cli
