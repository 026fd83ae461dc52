#pragma once
// Validates a run's model: its loss on the validation shard, and the score of the user's command.
// Calibrates the temperature of the memories for test time, when dropout is off.
// Runs a user's program that scores a model.

#include "infer/score/report.h"
#include "train/objective.h"

namespace train {

/// Returns whether there is a validation text and a memory (local or long) to validate with.
bool validates_memory(const Run& run);

struct Validated {
  infer::Totals totals;
  std::optional<double> joint_temperature;  ///< nullopt if validates_memory() is false
};
/// Validates on run.valid with the memory of the training (local and long), at the best of
/// calibration_points().
Validated validate(Run& run);

/// Writes the model to a temporary folder beside the checkpoints and runs `command` on it. Returns
/// nullopt if `stop` ended it. Throws the errors of run_valid_command and Objective::save.
std::optional<double> command_score(const std::string& command, const Objective& objective,
    std::optional<double> joint_temperature, const RunFolder& folder,
    const std::function<bool()>& stop);

// The test temperature differs from the training temperature because keys are normalised: with
// dropout, a part of a key is noise. If c is the cosine between two draws of one key, all scores at
// test are 1/c times those in training, for pairs with equal and with different labels. (4 layers,
// d 256, dropout 0.1, 40,000 tokens of a novel: c is 0.58, the standard deviation of scores 1.9
// instead of 1.4, the memories' share of the softmax 64 % instead of 24 %, and the loss 6.6 nats a
// token instead of 5.5.) A temperature of 1/c compensates. We found no other remedy: the noise
// comes from all layers, the embedding and the last attention contribute a fifth of it, and the
// common component of all keys accounts for a tenth of the mass.

/// Candidates, as multiples of the training temperature.
inline const std::vector<double> kCalibrationSteps = {
    0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 6, 10};
/// Returns kCalibrationSteps from `least` on, times `trained`.
std::vector<double> calibration_points(double trained, double least = 0);

/// Returns the first few micro-batches of a run, for the calibration of runs without a validation
/// text. `run.order` must not be in use elsewhere during the call.
std::vector<MicroBatch> calibration_batches(const Run& run);

/// Returns the candidate with the lowest loss over the batches, the first of equal ones, in
/// evaluation mode and without carried state. Candidates below `trained` are excluded: the loss has
/// trained on these keys, so lower temperatures would seem better. `rule` returns the rule of a
/// micro-batch. Restores the model's mode.
double calibrate(nn::Model& model, const std::vector<MicroBatch>& batches,
    const std::function<nn::MemoryRule(std::int64_t)>& rule, double trained, torch::Device device);

/// Runs `command` with /bin/sh. The environment variable TESSERA_MODEL and, shell-quoted, each {}
/// contain the model's folder. stdin is empty, stderr is inherited. Returns the last number on its
/// stdout. The command has its own process group: when `stop` (polled a few times a second) returns
/// true, the group receives SIGTERM, after ten seconds SIGKILL, and the result is nullopt. Throws
/// Error{bad_data} if it fails or prints no number, Error{io} if it cannot be started.
std::optional<double> run_valid_command(
    const std::string& command, const std::string& folder, const std::function<bool()>& stop);

/// Returns the last number of a text, such as 3, -0.5 or 1e-3; ignores digits within words.
std::optional<double> last_number(const std::string& text);

}  // namespace train
