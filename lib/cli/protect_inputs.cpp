#include "cli/protect_inputs.h"

#include <algorithm>
#include <filesystem>

#include "core/destination.h"
#include "core/error.h"
#include "core/io.h"

namespace cli {
namespace {

// Protects a file, or the files in a folder; does nothing if the path does not exist.
void protect_all_of(const std::string& path) {
  if (path.empty()) return;
  core::protect_input(path);
  std::error_code error;  // the code that reads it reports the error
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    core::protect_input(entry.path());
}

// Refuses an output among the files of a folder that is read, such as a store.
void refuse_to_write_into(const std::string& folder, const std::string& output) {
  const auto destination = core::destination_of(output);
  if (destination.descriptor) return;
  std::error_code error;  // a path that does not exist equals no other
  const auto parent = std::filesystem::absolute(destination.path).parent_path();
  if (std::filesystem::is_directory(folder, error) &&
      std::filesystem::equivalent(folder, parent, error))
    core::fail(core::Code::usage, "{}: is inside {}, which is an input; give another output",
               output, folder);
}

}  // namespace

void protect_inputs(const core::FieldList& fields, const Program& program,
                    const std::string& config, const std::string& output) {
  if (!config.empty()) core::protect_input(config);
  for (const auto& name : program.inputs) {
    const auto& all = fields.all();
    const auto field =
        std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
    if (field == all.end()) core::fail(core::Code::bug, "--{} is not an option", name);
    for (const auto& path : core::to_strings(*field)) protect_all_of(path);
  }
  for (const auto& field : fields.all()) {
    if (!field.positional) continue;
    const auto paths = core::to_strings(field);
    for (const auto& path : paths) {
      core::protect_input(path.empty() ? "-" : path);
      refuse_to_write_into(path, output);
    }
    if (paths.empty()) core::protect_input("-");
  }
}

}  // namespace cli
