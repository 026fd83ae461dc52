// model: inspects, checks, exports, merges and imports models.
//
// DIR: a model's folder (man 5 model), a transformers folder, or a GGUF file. FILE: a GGUF file, a
// checkpoint of torch.save or RWKV-LM, or its folder. stdout: figures (info, verify), a record of
// what was written (export, merge, import). -o: a folder, a GGUF file or a file of RWKV-LM.

#include "cli/progress.h"
#include "model/adapter.h"
#include "model/export_model.h"
#include "model/import_model.h"
#include "model/model_report.h"
#include "model/rwkv_file.h"
#include "nn/base/runtime.h"

namespace {

struct Folders {
  std::vector<std::string> folders;
  void fields(core::FieldList& f) {
    f.positional("DIR", folders, "folders of models").required = true;
  }
};

struct Export : model::ExportOptions {
  std::string folder, adapter;
  void fields(core::FieldList& f) {
    f.positional("DIR", folder, "folder of the model").required = true;
    model::adapter_field(f, adapter);
    ExportOptions::fields(f);
  }
};

struct Merge : Export {
  void fields(core::FieldList& f) {
    f.positional("DIR", folder, "folder of the model").required = true;
    f.positional("ADAPTER", adapter, "folder of a LoRA adapter of the model").required = true;
    ExportOptions::fields(f);
  }
};

struct Import : model::ImportOptions {
  std::string file;
  void fields(core::FieldList& f) {
    f.positional("FILE", file, "GGUF file, a checkpoint of torch.save or RWKV-LM, or its folder")
        .required = true;
    ImportOptions::fields(f);
  }
};

void start(const cli::Context& context) {
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
}

void expect_folder_to_write(const cli::Context& context) {
  if (context.output.empty() || context.output == "-")
    core::bad_usage("-o DIR is missing; give the folder for the model");
}

void say_it_was_there(const cli::Context& context) {
  cli::note(context, context.output + " already holds this model; nothing to do");
}

int model_info(const Folders& options, const cli::Context& context) {
  start(context);
  core::Output out(context.output);
  for (const auto& folder : options.folders) {
    const auto report = model::describe_model(folder);
    out.write(cli::format_report(context, context.json ? report : model::flattened(report)));
  }
  out.commit();
  return 0;
}

int verify_models(const Folders& options, const cli::Context& context) {
  start(context);
  core::Output out(context.output);
  const auto wrong = model::check_models(options.folders, [&](const model::ModelVerdict& found) {
    out.write(context.json ? core::dump(found.json()) + "\n" : found.lines());
  });
  out.commit();
  if (!wrong.empty()) core::bad_data("{}", wrong);
  return 0;
}

void write_gguf(
    const model::Loaded& loaded, const model::ExportOptions& options, const cli::Context& context) {
  const auto written = model::export_gguf(loaded, options.family, options.dtype, context.output);
  for (const auto& line : written.notes) cli::note(context, line);
  cli::write_receipt(context, {{"model", context.output}, {"architecture", written.architecture}});
}

void write_rwkv(
    const model::Loaded& loaded, const model::ExportOptions& options, const cli::Context& context) {
  model::export_rwkv(loaded, options.dtype, context.output);
  cli::write_receipt(context, {{"model", context.output}, {"architecture", "rwkv7"}});
}

// Writes a model and its adapter as a folder, with export_model() or merge_model(), or as a
// file of llama.cpp or RWKV-LM.
int write_model(const Export& options, const cli::Context& context,
    decltype(model::export_model)* make_folder) {
  expect_folder_to_write(context);
  start(context);
  const auto loaded = model::load(options.folder, torch::kCPU, torch::kFloat32, options.adapter);
  if (options.form != "transformers") {
    if (!options.results.empty())
      core::bad_usage("--results: requires --output-format transformers");
    if (options.form == "gguf") write_gguf(loaded, options, context);
    else write_rwkv(loaded, options, context);
    return 0;
  }
  const auto found = make_folder(loaded, options, context.output);
  if (found.was_there) say_it_was_there(context);
  cli::write_receipt(context, {{"model", context.output}, {"family", found.family}});
  return 0;
}

int export_folder(const Export& options, const cli::Context& context) {
  return write_model(options, context, model::export_model);
}

int merge_adapter(const Merge& options, const cli::Context& context) {
  return write_model(options, context, model::merge_model);
}

int import_file(const Import& options, const cli::Context& context) {
  expect_folder_to_write(context);
  start(context);
  const auto found = model::import_model(options.file, options, context.output);
  if (found.was_there) say_it_was_there(context);
  cli::write_receipt(context, {{"model", context.output}, {"program", found.program},
                                  {"arch", found.arch}, {"parameters", found.parameters}});
  return 0;
}

}  // namespace

int model_main(int argc, char** argv) {
  Folders looked_at, checked;
  Export given;
  Merge both;
  Import brought;
  return cli::run(argc, argv,
      {"model", "Describe, check, export, merge and import models.", "  model info model"},
      {cli::command("info", "Describe models: shape, tokenizer, training and origin.",
           "  model info --json model | jq .parameters", looked_at, model_info, {"DIR"}),
          cli::command("verify",
              "Check all files that a program would read; exit with 65 on an error.",
              "  model verify model", checked, verify_models, {"DIR"}),
          cli::command("export",
              "Export a model as a folder of transformers, a GGUF file or a file of RWKV-LM.",
              "  model export model --family gpt2 -o gpt2", given, export_folder,
              {"DIR", "adapter"}),
          cli::command("merge", "Merge a LoRA adapter into the weights of a model.",
              "  model merge base adapter -o merged", both, merge_adapter, {"DIR", "ADAPTER"}),
          cli::command("import",
              "Convert a GGUF file, or a checkpoint of fairseq, nanoGPT, RWKV-LM or Transformer-XL.",
              "  model import -t gpt2.json ckpt.pt -o model", brought, import_file,
              {"FILE", "tokenizer"})});
}
