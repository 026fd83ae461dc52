# Two cores for some hours: ten times the updates of SCALE=small, with the published first values.
include scale/small.mk
steps = 4000
steps.half = 2000
steps.double = 8000
warmup = 400
warmup.short = 40
batch += --checkpoint-every 500 --keep 1
shape.mosaic = --init fan-in --no-scale-embedding
shape.transformer = --init gpt2 --no-scale-embedding
