# SPDX-License-Identifier: Apache-2.0
"""device_code.py PRINTER - runs the device code that PRINTER prints, instruction
by instruction and thread by thread, and checks what it leaves in memory."""
import math
import re
import struct
import subprocess
import sys

WIDTH = {"8": 1, "16": 2, "32": 4, "64": 8}
MASK64 = (1 << 64) - 1
PARAMETER = 1 << 40  # address of a parameter that is an array
MARK, WAIT = 1, 2


def f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def f16_bits(x):
    if math.isnan(x):
        return 0x7FFF
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0x7C00 | (0x8000 if x < 0 else 0)


def parse(text):
    """{name: (parameters, instructions, labels)}"""
    entries = {}
    for m in re.finditer(r"\.entry (\w+)\((.*?)\)\s*(?:\.maxntid[^{]*)?\{\n"
                         r"(.*?)\nret;\n\}",
                         text, re.S):
        params = re.findall(r"\.param (?:\.align 8 )?\.(\w+) (\w+)", m[2])
        code, labels = [], {}
        for line in (m[3] + "\nret;").split("\n"):
            while (label := re.match(r"(\w+):\s*", line)):
                labels[label[1]] = len(code)
                line = line[label.end():]
            for one in filter(None, (s.strip() for s in re.findall(
                    r"(?:[^;{}]|\{[^}]*\})+", line))):
                if not one.startswith("."):
                    code.append(decode(one))
        entries[m[1]] = (params, code, labels)
    return entries


def decode(text):
    guard = None
    if text.startswith("@"):
        guard, text = text[1:].split(None, 1)
    op, _, rest = text.partition(" ")
    args = [a.strip() for a in re.findall(r"\s*(\{[^}]*\}|[^,]+)", rest)]
    return guard, op.split("."), args


class Machine:
    def __init__(self, text):
        self.entries = parse(text)
        self.mem = bytearray(1 << 16)
        self.clock = 1000

    def op(self, name, blocks, threads, *fills, slot=0, count=0, ring=0,
           tickets=0, gen=0, flags=0, index=0):
        """fills: (dst, src, n, factor, scalar, copies, power)"""
        data = b"".join(struct.pack("<5Q2I", *f) for f in fills)
        self.launch("stepcast_op_" + name, blocks, threads, slot, count, ring,
                    tickets, gen, flags, index, len(fills), data)

    def launch(self, name, blocks, threads, *args):
        params = self.entries[name][0]
        assert len(params) == len(args), (name, params)
        values = {p[1]: (p[0], a) for p, a in zip(params, args)}
        for block in range(blocks):
            self.shared = bytearray(16384)
            todo = [self.thread(name, values, block, t, threads, blocks)
                    for t in range(threads)]
            while todo:
                todo = [t for t in todo if next(t, None) == "bar"]

    def thread(self, name, params, block, tid, threads, blocks):
        _, code, labels = self.entries[name]
        reg = {"%tid.x": tid, "%ctaid.x": block, "%ntid.x": threads,
               "%nctaid.x": blocks, "part": 0, "%clock": 5,
               "space": 0, "p_fill": PARAMETER}
        pc = steps = 0
        while True:
            steps += 1
            assert steps < 200000, name
            guard, op, args = code[pc]
            pc += 1
            if guard and not reg[guard]:
                continue
            if op[0] == "ret":
                return
            if op[0] == "bra":
                pc = labels[args[0]]
            elif op[0] == "bar":
                yield "bar"
            elif op[0] not in ("membar", "prefetch"):
                self.step(reg, op, args, params)

    def value(self, reg, arg, kind):
        if arg == "%globaltimer":
            self.clock += 7
            return self.clock
        if arg.startswith("0f"):
            return struct.unpack(">f", bytes.fromhex(arg[2:]))[0]
        if arg.startswith("0d"):
            return struct.unpack(">d", bytes.fromhex(arg[2:]))[0]
        v = reg[arg] if arg[0] in "%p" else int(arg, 0)
        if kind == "f32" and not isinstance(v, float):
            return struct.unpack("<f", struct.pack("<I", v & 0xFFFFFFFF))[0]
        if kind == "f64" and not isinstance(v, float):
            return struct.unpack("<d", struct.pack("<Q", v & MASK64))[0]
        if kind[0] != "f" and isinstance(v, float):
            f, i = ("<d", "<Q") if kind[1:] == "64" else ("<f", "<I")
            return struct.unpack(i, struct.pack(f, v))[0]
        if kind[0] == "s":
            bits = int(kind[1:])
            v &= (1 << bits) - 1
            v -= (v >> (bits - 1)) << bits
        elif kind[0] in "ub":
            v &= (1 << int(kind[1:])) - 1
        return v

    def address(self, reg, arg):
        base, _, off = arg.strip("[]").partition("+")
        return (reg[base] & MASK64) + int(off or 0)

    def load(self, mem, at, kind):
        n = WIDTH[kind[1:]]
        raw = bytes(mem[at:at + n])
        if kind[0] == "f":
            return struct.unpack("<f" if n == 4 else "<d", raw)[0]
        return int.from_bytes(raw, "little", signed=kind[0] == "s")

    def store(self, mem, at, kind, v):
        n = WIDTH[kind[1:]]
        if kind[0] == "f":
            mem[at:at + n] = struct.pack("<f" if n == 4 else "<d", v)
        else:
            mem[at:at + n] = (v & ((1 << 8 * n) - 1)).to_bytes(n, "little")

    def step(self, reg, op, args, params):
        kind = op[-1]
        if op[0] == "ld" and op[1] == "param" and "%" in args[1]:
            at = self.address(reg, args[1]) - PARAMETER
            reg[args[0]] = self.load(params["p_fill"][1], at, kind)
        elif op[0] == "atom":
            at = self.address(reg, args[1])
            reg[args[0]] = self.load(self.mem, at, kind)
            self.store(self.mem, at, kind, reg[args[0]] + int(args[2]))
        elif op[0] == "ld" and op[1] == "param":
            held, v = params[args[1].strip("[]")]
            if kind[0] == "f" and isinstance(v, int):
                v = struct.unpack("<d", struct.pack("<Q", v & MASK64))[0]
            reg[args[0]] = v
        elif op[0] in ("ld", "st"):
            mem = self.shared if "shared" in op else self.mem
            self.move(reg, op, args, mem, kind)
        elif op[0] == "setp":
            self.compare(reg, op, args, kind)
        elif op[0] == "cvt":
            self.convert(reg, op, args)
        elif op[0] == "mov" and args[1].startswith("%z") and "{" in args[0]:
            lo, hi = args[0].strip("{}").split(",")
            z = reg[args[1]]
            reg[lo.strip()], reg[hi.strip()] = z & 0xFFFFFFFF, z >> 32
        else:
            self.compute(reg, op, args, kind)

    def move(self, reg, op, args, mem, kind):
        load = op[0] == "ld"
        at = self.address(reg, args[1] if load else args[0])
        names = [a.strip() for a in args[0 if load else 1].strip("{}").split(",")]
        for k, name in enumerate(names):
            where = at + k * WIDTH[kind[1:]]
            assert where % WIDTH[kind[1:]] == 0, "unaligned"
            if load:
                reg[name] = self.load(mem, where, kind)
            else:
                self.store(mem, where, kind,
                           self.value(reg, name, kind if kind[0] == "f" else "b64"))

    def compare(self, reg, op, args, kind):
        a, b = (self.value(reg, x, kind) for x in args[1:])
        reg[args[0]] = {"eq": a == b, "ne": a != b, "lt": a < b, "ge": a >= b,
                        "nan": a != a or b != b}[op[1]]

    def convert(self, reg, op, args):
        to, frm = op[-2], op[-1]
        v = reg[args[1]]
        if frm == "f16":
            v = struct.unpack("<e", struct.pack("<H", v & 0xFFFF))[0]
        else:
            v = self.value(reg, args[1], frm)
        reg[args[0]] = (f16_bits(v) if to == "f16" else f32(float(v))
                        if to == "f32" else float(v) if to == "f64" else v)

    def compute(self, reg, op, args, kind):
        v = [self.value(reg, a, kind) for a in args[1:]]
        name = op[0]
        if name == "mad" and op[1] == "wide":
            v[2] = reg[args[3]]
        out = {
            "mov": lambda: v[0], "add": lambda: v[0] + v[1],
            "sub": lambda: v[0] - v[1], "mul": lambda: v[0] * v[1],
            "mad": lambda: v[0] * v[1] + v[2], "fma": lambda: v[0] * v[1] + v[2],
            "div": lambda: v[0] / v[1] if kind[0] == "f" else v[0] // v[1],
            "rem": lambda: v[0] % v[1], "sqrt": lambda: math.sqrt(v[0]),
            "min": lambda: min(v), "max": lambda: max(v),
            "and": lambda: v[0] & v[1], "or": lambda: v[0] | v[1],
            "xor": lambda: v[0] ^ v[1], "shl": lambda: v[0] << v[1],
            "shr": lambda: v[0] >> v[1], "lg2": lambda: math.log2(v[0]),
            "cos": lambda: math.cos(v[0])}[name]()
        if kind == "f32":
            out = f32(out)
        elif kind[0] != "f":
            out &= MASK64 if "wide" in op else (1 << int(kind[1:])) - 1
        reg[args[0]] = out


# ---- numbers of a type -----------------------------------------------------------


def small(bits, e, m):
    mant, exp = bits & ((1 << m) - 1), bits >> m & ((1 << e) - 1)
    sign, bias = -1.0 if bits >> (e + m) & 1 else 1.0, (1 << (e - 1)) - 1
    if exp == 0:
        return sign * mant * 2.0 ** (1 - bias - m)
    if exp == (1 << e) - 1 and (m != 3 or mant == 7):
        return math.nan if mant else sign * math.inf
    return sign * (mant + (1 << m)) * 2.0 ** (exp - bias - m)


FLOATS = {"f16": (2, 5, 10), "bf16": (2, 8, 7), "e4m3": (1, 4, 3),
          "e5m2": (1, 5, 2), "f32": (4, 8, 23), "f64": (8, 11, 52)}
INTS = {"b8": 1, "b32": 4, "b64": 8}


def nearest(want, size, e, m):
    """All finite values of a narrow type, and the bits of the nearest one."""
    best = min((b for b in range(1 << 8 * size) if math.isfinite(small(b, e, m))),
               key=lambda b: (abs(small(b, e, m) - want), b & 1))
    return small(best, e, m)


def bits_of(v):
    return struct.unpack("<Q", struct.pack("<d", v))[0]


def check_scale_floats(m):
    for name, (size, e, bits) in FLOATS.items():
        patterns = range(256) if size == 1 else range(0, 1 << 16, 257)
        if size > 2:
            patterns = [struct.unpack("<Q" if size == 8 else "<I", struct.pack(
                "<d" if size == 8 else "<f", v))[0] for v in
                (0.0, 1.5, -2.25, 3e30, 1e-30)]
        patterns = list(patterns)
        # aligned (16 bytes at a time, with a rest), and not
        for src, dst in ((1024, 8192), (1024 + size, 8192), (1024, 8192 + size)):
            scale_floats(m, name, size, e, bits, patterns, src, dst)


def scale_floats(m, name, size, e, bits, patterns, src, dst):
    for i, p in enumerate(patterns):
        m.store(m.mem, src + i * size, "u%d" % (8 * size), p)
    m.op(name, 2, 32, (dst, src, len(patterns), bits_of(3.0), 0, 0, 0))
    for i, p in enumerate(patterns):
        got = small(m.load(m.mem, dst + i * size, "u%d" % (8 * size)), e, bits)
        x = small(p, e, bits)
        if not math.isfinite(x):
            continue
        if size == 1:
            want = nearest(3 * x, size, e, bits)
            assert got == want, (name, x, got, want)
        elif abs(3 * x) < 6e4:
            assert abs(got - 3 * x) <= abs(3 * x) * 2.0 ** -(bits + 1) + \
                2.0 ** -24 * (e == 5), (name, x, got)


def check_scale_ints(m):
    for name, size in INTS.items():
        for dst in (8192, 8192 + size):
            scale_ints(m, name, size, dst)


def scale_ints(m, name, size, dst):
    kind, n = "s%d" % (8 * size), 37
    values = [(i * 5 - 3) % 120 for i in range(n)]
    for i, v in enumerate(values):
        m.store(m.mem, 1024 + i * size, kind, v)
    m.store(m.mem, 512, kind, 2)
    for scalar, power, f in ((0, 0, lambda v: 3 * v), (512, 0, lambda v: 6 * v),
                             (0, 3, lambda v: v ** 3)):
        m.store(m.mem, dst + n * size, kind, 99)
        m.op(name, 1, 4, (dst, 1024, n, 3, scalar, 0, power))
        for i, v in enumerate(values):
            got = m.load(m.mem, dst + i * size, kind)
            assert (got - f(v)) % (1 << 8 * size) == 0, (name, v, got)
        assert m.load(m.mem, dst + n * size, kind) == 99


def check_copies(m):
    for size in (1, 4, 7, 12, 16, 48, 61, 16 * 37):
        for dst, src in ((8192, 1024), (8193, 1024), (8196, 1028)):
            data = bytes((i * 37 + 1) % 256 for i in range(size))
            m.mem[src:src + size] = data
            m.mem[8000:11000] = bytes(3000)
            m.op("f16", 1, 8, (dst, src, size, 0, 0, 3, 0))
            assert m.mem[dst:dst + 3 * size] == data * 3, (size, dst, src)
            assert not any(m.mem[dst + 3 * size:11000])
            m.op("b8", 2, 4, (dst, 0, 2 * size, 0, 0, 1, 0))
            assert m.mem[dst:dst + 3 * size] == bytes(2 * size) + data
    m.mem[8192:8192 + 96] = bytes(96)  # in place: the second of three
    m.mem[8224:8256] = bytes(range(32))
    m.op("f32", 1, 2, (8192, 8224, 32, 0, 0, 3, 0))
    assert m.mem[8192:8288] == bytes(range(32)) * 3


def check_words(m):
    """Launches that wait, that only begin, and captured ones, of which a host
    hears through the ring."""
    m.mem[0:512] = bytes(512)
    for gen in (5, 6):
        before = m.clock
        m.store(m.mem, 76, "u32", gen)
        m.op("f32", 3, 32, slot=64, gen=gen, flags=MARK | WAIT)
        assert m.load(m.mem, 72, "u32") == gen
        assert m.load(m.mem, 64, "u64") > before
    m.op("b8", 1, 32, slot=64, gen=7, flags=MARK)
    m.store(m.mem, 76, "u32", 7)
    m.op("b8", 2, 32, slot=64, gen=7, flags=WAIT)
    m.op("b8", 2, 32, slot=64, flags=WAIT)
    for k in range(3):
        m.store(m.mem, 76, "u32", 8 + k)
        m.op("f32", 3, 32, slot=64, count=128, ring=4096, tickets=132, gen=7,
             flags=MARK | WAIT, index=19)
        assert m.load(m.mem, 72, "u32") == 8 + k
        assert m.load(m.mem, 128, "u32") == 3 * (k + 1)
        assert m.load(m.mem, 4096 + 8 * k, "u32") == k + 1
        assert m.load(m.mem, 4100 + 8 * k, "u32") == 19
        assert m.load(m.mem, 4104 + 8 * k, "u64") == 0
    m.store(m.mem, 132, "u32", 4096 + 1)  # the ring has come round
    m.store(m.mem, 76, "u32", 11)
    m.op("f32", 3, 32, slot=64, count=128, ring=4096, tickets=132, gen=7,
         flags=MARK | WAIT, index=20)
    assert m.load(m.mem, 4104, "u64") == 20 << 32 | 4098


def check_all_in_one(m):
    """Several pieces of data between begin and end."""
    m.mem[72:80] = bytes(4) + b"\1\0\0\0"
    for i in range(9):
        m.store(m.mem, 1024 + 4 * i, "f32", i)
    m.op("f32", 2, 32, (8192, 1024, 9, bits_of(2.0), 0, 0, 0),
         (8240, 1024, 36, 0, 0, 2, 0), (8320, 0, 16, 0, 0, 1, 0), slot=64, gen=1,
         flags=MARK | WAIT)
    assert m.load(m.mem, 72, "u32") == 1
    for i in range(9):
        assert m.load(m.mem, 8192 + 4 * i, "f32") == 2 * i
        assert m.load(m.mem, 8240 + 4 * i, "f32") == i
        assert m.load(m.mem, 8276 + 4 * i, "f32") == i
    assert not any(m.mem[8320:8336])


def check_noise(m):
    for name in ("f32", "f64", "bf16", "f16"):
        size, e, bits = FLOATS[name]
        kind, n = "u%d" % (8 * size), 1500
        three = {"f32": (0x40400000, 0xBF800000), "bf16": (0x4040, 0xBF80),
                   "f16": (0x4200, 0xBC00),
                   "f64": (0x4008 << 48, 0xBFF0 << 48)}[name]  # 3 and -1
        for i in range(n):
            m.store(m.mem, 8192 + i * size, kind, three[i % 2])
        m.launch("stepcast_moments_" + name, 3, 64, 8192, n, 256)
        sums = [m.load(m.mem, 256 + 8 * i, "f64") for i in range(6)]
        assert abs(sum(sums[::2]) - n) < 1e-9 and abs(sum(sums[1::2]) - 5 * n) < 1e-9
        m.launch("stepcast_noise_" + name, 2, 64, 8192, n, 256, 3, n, 0.25, 99)
        dev = [small(m.load(m.mem, 8192 + i * size, kind), e, bits) - (-1, 3)[i % 2 == 0]
               for i in range(n)]
        mean = sum(dev) / n
        sigma = math.sqrt(sum(d * d for d in dev) / n)
        assert abs(mean) < 0.06 and abs(sigma - 0.5) < 0.04, (name, mean, sigma)


def main():
    text = subprocess.run([sys.argv[1]], capture_output=True, text=True,
                          check=True).stdout
    m = Machine(text)
    # or a compiler may give more registers than there are for so many threads
    assert len(re.findall(r"\.entry stepcast_op_\w+\([^)]*\)\s*\.maxntid 640, 1, 1",
                          text)) == 9
    print(len(m.entries), "kernels")
    assert len(m.entries) == 9 + 2 * 6
    for check in (check_words, check_copies, check_all_in_one,
                  check_scale_ints, check_scale_floats, check_noise):
        check(m)
        print(check.__name__, "right")


main()
