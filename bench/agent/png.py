"""Reading a PNG with the standard library, to see that a chart is a picture with something in it."""

import struct
import zlib
from collections import Counter

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
MAX_PIXELS = 20_000_000


class Picture:
    def __init__(self, width, height, pixels):
        self.width = width
        self.height = height
        self.rows = pixels      # per row a list of pixels, each a tuple of its channels

    def ink(self, border=0.0):
        """The share of pixels that differ from the commonest colour, inside a border of this share on each side."""
        background = Counter(pixel for row in self.rows for pixel in row).most_common(1)[0][0]
        left, top = int(self.width * border), int(self.height * border)
        inner = [row[left:self.width - left] for row in self.rows[top:self.height - top]]
        marked = sum(pixel != background for row in inner for pixel in row)
        return marked / max(1, sum(len(row) for row in inner))


def chunks(data):
    position = len(SIGNATURE)
    while position < len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8:position + 8 + length]
        if len(body) != length or zlib.crc32(kind + body) != struct.unpack_from(">I", data, position + 8 + length)[0]:
            raise ValueError("a chunk is cut or damaged")
        yield kind, body
        position += length + 12


def paeth(left, above, corner):
    guess = left + above - corner
    distances = abs(guess - left), abs(guess - above), abs(guess - corner)
    return (left, above, corner)[distances.index(min(distances))]


def unfilter(kind, line, previous, step):
    if kind == 2:
        return bytearray((value + above) & 255 for value, above in zip(line, previous))
    if kind in (1, 3, 4):
        for index, value in enumerate(line):
            left = line[index - step] if index >= step else 0
            above = previous[index]
            if kind == 1:
                guess = left
            elif kind == 3:
                guess = (left + above) // 2
            else:
                guess = paeth(left, above, previous[index - step] if index >= step else 0)
            line[index] = (value + guess) & 255
    elif kind != 0:
        raise ValueError(f"filter {kind} does not exist")
    return line


def decode(data):
    """A Picture; ValueError for what is no PNG with 8 bits a channel."""
    if not data.startswith(SIGNATURE):
        raise ValueError("this is no PNG")
    try:
        parts = list(chunks(data))
        width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
        if bits != 8 or colour not in CHANNELS or interlaced or width * height > MAX_PIXELS:
            raise ValueError(f"a PNG of {width}×{height}, {bits} bits, colour type {colour} is not read here")
        raw = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    except (struct.error, zlib.error, IndexError) as error:
        raise ValueError(f"the PNG is damaged: {error}") from None
    step = CHANNELS[colour]
    stride = width * step
    if len(raw) != (stride + 1) * height:
        raise ValueError("the PNG has too few rows")
    rows, previous = [], bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        previous = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + stride]), previous, step)
        rows.append(list(zip(*(previous[channel::step] for channel in range(step)))))
    return Picture(width, height, rows)


def encode(rows):
    """An RGB PNG of rows of (red, green, blue): what the tests draw."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
