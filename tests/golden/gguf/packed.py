"""packed.py: packed.gguf, numbers ("numbers") and what the package `gguf` packs them into ("F16", "BF16",
"Q8_0", "Q4_0", "Q4_1"). Needs gguf and numpy."""
import gguf
import numpy as np

rng = np.random.default_rng(2)
numbers = np.concatenate([
    rng.normal(0, 1, 64), rng.normal(0, 1e-6, 32), rng.normal(0, 900, 32), np.zeros(32),
    np.arange(32) * 0.5 - 7.75,  # halves between steps
    [6.1e-5, 6.0e-5, -5.96e-8, 2.98e-8, 2.99e-8, 65504, -65519, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -0.0] + [0.1] * 20,
    rng.normal(0.3, 0.02, 1024),
    # With float32 products, one is half a step, which a fused multiply-add would not see.
    np.array([int(digit, 16) for digit in "85a1dff9c36779d6bed0ebdcf436390d"], np.float32) * np.float32(0.041656494140625) - np.float32(0.380859375),
]).astype(np.float32).reshape(1, -1)
writer = gguf.GGUFWriter("packed.gguf", "llama")
writer.add_tensor("numbers", numbers)
for name in ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]:
    kind = gguf.GGMLQuantizationType[name]
    packed = gguf.quants.quantize(numbers, kind)
    writer.add_tensor(name, np.ascontiguousarray(packed).view(np.uint8), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
