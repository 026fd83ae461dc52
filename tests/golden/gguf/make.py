"""make.py: blocks.gguf, random blocks of each type (as "Q4_K") and the numbers that the package `gguf` makes of them
(as "Q4_K.expected"). Needs gguf and numpy."""
import gguf
import numpy as np

rng = np.random.default_rng(1)
writer = gguf.GGUFWriter("blocks.gguf", "llama")
scales = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
for name in ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"]:
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = 64 if elements == 1 else 2
    raw = rng.integers(0, 256, size=(blocks, size), dtype=np.uint8)
    for at in scales.get(name, [0]):  # finite
        raw[:, at + 1] = (raw[:, at + 1] & 0x83) | (rng.integers(0, 31, size=blocks) << 2).astype(np.uint8)
    raw = raw.reshape(1, -1)
    expected = raw.view(np.float16).astype(np.float32) if name == "F16" else gguf.quants.dequantize(raw, kind)
    writer.add_tensor(name, raw, raw_dtype=kind)
    writer.add_tensor(name + ".expected", expected)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
