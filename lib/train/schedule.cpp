#include "train/schedule.h"

#include <numbers>

namespace train {

Schedule::Schedule(const ScheduleOptions& options, double lr, std::int64_t steps)
    : options_(options), lr_(lr), warmup_(static_cast<double>(share_of(options.warmup, steps))),
      period_(std::max(1.0, static_cast<double>(steps) - warmup_)) {
  if (options.schedule == "cosine-restarts" && options.period > 0) period_ = options.period;
}

double Schedule::cosine(double done, double period, double scale) const {
  const double low = options_.min_lr * scale, high = lr_ * scale;
  return low + 0.5 * (high - low) * (1 + std::cos(std::numbers::pi * std::min(1.0, done / period)));
}

double Schedule::restarts(double since) const {
  const double m = options_.t_mult;
  double i = std::floor(since / period_), begin = period_ * i, period = period_;
  if (m > 1) {
    // The periods before the i-th take period (m^i - 1) / (m - 1). The small term assigns a restart
    // to its own step.
    i = std::floor(std::log(1 + since / period_ * (m - 1)) / std::log(m) + 1e-12);
    period = period_ * std::pow(m, i);
    begin = (period - period_) / (m - 1);
  }
  return cosine(since - begin, period, std::pow(options_.lr_shrink, i));
}

double Schedule::at(std::int64_t step) const {
  const double now = static_cast<double>(step);
  if (now < warmup_)
    return options_.warmup_init_lr + (lr_ - options_.warmup_init_lr) * now / warmup_;
  if (options_.schedule == "linear")
    return lr_ + (options_.min_lr - lr_) * std::min(1.0, (now - warmup_) / period_);
  if (options_.schedule == "cosine") return cosine(now - warmup_, period_, 1);
  if (options_.schedule == "cosine-restarts") return restarts(now - warmup_);
  if (options_.schedule == "inverse-sqrt")
    return lr_ * std::sqrt(std::max(1.0, warmup_) / std::max(1.0, now));
  return lr_;
}

}  // namespace train
