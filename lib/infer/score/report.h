#pragma once
// Formats results, and the signature that identifies what they depend on.

#include <string>

#include "core/hash.h"
#include "core/json.h"
#include "infer/score/totals.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// Returns the first 12 hexadecimal digits.
std::string short_fingerprint(const core::Digest& digest);

/// Returns one string with all settings that affect a result (after sacreBLEU):
///   data:…|model:…|protocol:hf|window:512|stride:512|reset:none|carry:off|first:skipped|
///   retrieve:…:100:0.9:0.4|retrieve-query:32|retrieve-tokens:256|memory:local+long|
///   long:2048|combine:joint|temperature:1.1|cache:2000|theta:0.06|cache-lambda:0.1|
///   stores:…+…|k:1024|nprobe:32|rescore:no|stores-combine:both|stores-temperature:10|
///   stores-lambda:0.3|ensemble:...@512/256|ensemble-lambda:0.5|precision:float32|version:0.1.0
/// Omits unused settings. For pairs, unit:pair replaces the windows.
std::string signature(const core::Digest& data, const core::Digest& model,
                      const WindowPlan& windows, const MemoryPlan& memory,
                      const std::string& precision);

/// Returns a number for a report; null if it is not finite.
core::OrderedJson figure(double value);
/// Returns loss, perplexity, bits_per_token, bits_per_byte, bits_per_word, byte_perplexity,
/// word_perplexity, tokens, bytes, words; null if the data lack the numbers. Reproducible from run
/// to run.
core::OrderedJson figures(const Totals& totals);
/// Returns the results that depend on the clock: seconds, tokens_per_s.
core::OrderedJson timings(const Totals& totals);

}  // namespace infer
