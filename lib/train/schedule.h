#pragma once
// Learning rate schedules.

#include "train/train_options.h"

namespace train {

/// The learning rate of update `step` (the first is 0) of `steps`. Linear from warmup_init_lr at 0
/// to lr at the warm-up's end w; from there, with s = step - w:
///   cosine           min_lr + (lr - min_lr) (1 + cos(pi s / (steps - w))) / 2, and min_lr after it
///   cosine-restarts  the same over periods T_i = period * t_mult^i, both rates times lr_shrink^i
///   in period i
///                    (Loshchilov & Hutter 2017; the shrink is fairseq's)
///   inverse-sqrt     lr sqrt(w / step); w is at least 1 (Vaswani et al. 2017, section 5.3)
///   linear           from lr down to min_lr at the end
///   constant         lr
class Schedule {
 public:
  Schedule(const ScheduleOptions& options, double lr, std::int64_t steps);
  double at(std::int64_t step) const;

 private:
  double cosine(double done, double period, double scale) const;
  double restarts(double since) const;
  ScheduleOptions options_;
  double lr_, warmup_, period_;
};

}  // namespace train
