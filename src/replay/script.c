/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - the program that measures operators on somebody's device. */
#include "replay/replay_measure.h"

#include <string.h>

static const char before[] =
    "#!/usr/bin/env python3\n"
    "\"\"\"Measures operators of PyTorch with the inputs that a trace "
    "recorded.\n"
    "\n"
    "Written by stepcast calibrate --measure-list.  It needs only PyTorch, and "
    "a\n"
    "few minutes of a device (a CPU without one):\n"
    "\n"
    "    python3 this.py > kernels.csv\n"
    "    stepcast replay trace.json --device NAME --measured kernels.csv\n"
    "\n"
    "Operators that can't be called from what the trace recorded are named on\n"
    "the standard error, and have no row.\n"
    "\"\"\"\n"
    "import csv\n"
    "import json\n"
    "import sys\n"
    "import time\n"
    "\n"
    "import torch\n"
    "\n"
    "# name, shapes, types and scalars of the inputs\n"
    "OPERATORS = json.loads(r'''\n";

static const char behind[] =
    "''')\n"
    "\n"
    "TYPES = {\n"
    "    'float': torch.float32, 'double': torch.float64,\n"
    "    'c10::Half': torch.float16, 'c10::BFloat16': torch.bfloat16,\n"
    "    'long int': torch.int64, 'long': torch.int64, 'int': torch.int32,\n"
    "    'short': torch.int16, 'unsigned char': torch.uint8,\n"
    "    'signed char': torch.int8, 'bool': torch.bool,\n"
    "}\n"
    "CALLS = 20\n"
    "\n"
    "\n"
    "def tensor(dims, kind, device):\n"
    "    dtype = TYPES[kind]\n"
    "    if dtype.is_floating_point:\n"
    "        return torch.rand(dims, device=device).to(dtype)\n"
    "    if dtype == torch.bool:\n"
    "        return torch.ones(dims, dtype=dtype, device=device)\n"
    "    return torch.zeros(dims, dtype=dtype, device=device)\n"
    "\n"
    "\n"
    "def scalar(text):\n"
    "    text = text.strip()\n"
    "    if text in ('', 'None'):\n"
    "        return None\n"
    "    if text in ('True', 'False'):\n"
    "        return text == 'True'\n"
    "    if text.startswith('['):\n"
    "        inner = text[1:-1].strip()\n"
    "        return [scalar(x) for x in inner.split(',')] if inner else []\n"
    "    for read in (int, float):\n"
    "        try:\n"
    "            return read(text)\n"
    "        except ValueError:\n"
    "            pass\n"
    "    return text\n"
    "\n"
    "\n"
    "def inputs(dims, types, concrete, device):\n"
    "    first = next((t for t in types if t in TYPES), 'float')\n"
    "    out = []\n"
    "    for i, kind in enumerate(types):\n"
    "        shape = dims[i] if i < len(dims) else []\n"
    "        if kind in TYPES:\n"
    "            out.append(tensor(shape, kind, device))\n"
    "        elif kind == 'TensorList' or (shape and isinstance(shape[0], "
    "list)):\n"
    "            out.append([tensor(s, first, device) for s in shape])\n"
    "        else:\n"
    "            out.append(scalar(concrete[i]) if i < len(concrete) else "
    "None)\n"
    "    return out\n"
    "\n"
    "\n"
    "def bound(function, values):\n"
    "    \"\"\"The call with the values in the places that the schema gives "
    "them.\"\"\"\n"
    "    places = function._schema.arguments\n"
    "    if len(values) > len(places):\n"
    "        raise ValueError('too many inputs')\n"
    "    args, named = [], {}\n"
    "    for place, value in zip(places, values):\n"
    "        if value is None and place.has_default_value():\n"
    "            value = place.default_value\n"
    "        if getattr(place, 'kwarg_only', False):\n"
    "            if value is not None:\n"
    "                named[place.name] = value\n"
    "        else:\n"
    "            args.append(value)\n"
    "    return lambda: function(*args, **named)\n"
    "\n"
    "\n"
    "def callable_of(name, values):\n"
    "    space, _, word = name.partition('::')\n"
    "    packet = getattr(getattr(torch.ops, space), word)\n"
    "    why = ValueError('no overload takes these inputs')\n"
    "    for overload in packet.overloads():\n"
    "        try:\n"
    "            call = bound(getattr(packet, overload), values)\n"
    "            call()\n"
    "            return call\n"
    "        except Exception as error:\n"
    "            why = error\n"
    "    raise why\n"
    "\n"
    "\n"
    "def on_device(call):\n"
    "    \"\"\"Seconds of the kernels of one call.\"\"\"\n"
    "    from torch.profiler import ProfilerActivity, profile\n"
    "    with profile(activities=[ProfilerActivity.CUDA]) as p:\n"
    "        for _ in range(CALLS):\n"
    "            call()\n"
    "        torch.cuda.synchronize()\n"
    "    kernels = [e for e in p.events() if 'CUDA' in str(e.device_type)]\n"
    "    return sum(e.time_range.elapsed_us() for e in kernels) * 1e-6 / "
    "CALLS\n"
    "\n"
    "\n"
    "def on_host(call):\n"
    "    took = []\n"
    "    while len(took) < CALLS and sum(took) < 1:\n"
    "        begun = time.perf_counter()\n"
    "        call()\n"
    "        took.append(time.perf_counter() - begun)\n"
    "    return sorted(took)[len(took) // 2]\n"
    "\n"
    "\n"
    "def main():\n"
    "    cuda = torch.cuda.is_available()\n"
    "    device = 'cuda' if cuda else 'cpu'\n"
    "    name = torch.cuda.get_device_name() if cuda else 'cpu'\n"
    "    table = csv.writer(sys.stdout, lineterminator='\\n')\n"
    "    table.writerow(['operator', 'dims', 'types', 'concrete', 'device',\n"
    "                    'seconds'])\n"
    "    left_out = 0\n"
    "    for operator, dims, types, concrete in OPERATORS:\n"
    "        try:\n"
    "            values = inputs(json.loads(dims or '[]'),\n"
    "                            json.loads(types or '[]'),\n"
    "                            json.loads(concrete or '[]'), device)\n"
    "            with torch.no_grad():\n"
    "                call = callable_of(operator, values)\n"
    "                call()\n"
    "                seconds = on_device(call) if cuda else on_host(call)\n"
    "        except Exception as error:\n"
    "            left_out += 1\n"
    "            text = str(error).strip().splitlines()\n"
    "            print('not measured: %s %s: %s' % (operator, dims,\n"
    "                  text[0] if text else type(error).__name__),\n"
    "                  file=sys.stderr)\n"
    "            continue\n"
    "        if seconds > 0:\n"
    "            table.writerow([operator, dims, types, concrete, name,\n"
    "                            '%.9g' % seconds])\n"
    "            sys.stdout.flush()\n"
    "    print('%d of %d operators measured' % (len(OPERATORS) - left_out,\n"
    "                                           len(OPERATORS)),\n"
    "          file=sys.stderr)\n"
    "\n"
    "\n"
    "if __name__ == '__main__':\n"
    "    main()\n";

/* Texts of traces are nobody's program: an apostrophe could end the string. */
static void add_quoted(const char *json, sc_text *out)
{
    while (*json) {
        size_t n = strcspn(json, "'");
        sc_text_add(out, "%.*s%s", (int)n, json, json[n] ? "\\u0027" : "");
        json += n + (json[n] != '\0');
    }
    sc_text_add(out, "\n");
}

void sc_replay_measure_script(const sc_replay_operators *o, sc_text *out)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '[');
    for (uint32_t i = 0; i < o->n; i++) {
        const sc_replay_operator *x = &o->of[i];
        if (!x->why) continue;
        sc_json_begin(&j, '[');
        sc_json_string(&j, x->name);
        sc_json_string(&j, x->dims);
        sc_json_string(&j, x->types);
        sc_json_string(&j, x->concrete);
        sc_json_end(&j, ']');
    }
    sc_json_end(&j, ']');
    sc_text_add(out, "%s", before);
    add_quoted(j.buf ? j.buf : "[]", out);
    sc_text_add(out, "%s", behind);
    out->failed = out->failed || j.failed;
    sc_json_free(&j);
}
