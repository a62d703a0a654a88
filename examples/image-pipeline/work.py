"""The work of the two stages, and the images that go through them."""

import importlib.util
import pathlib

import cv2
import numpy
import onnxruntime

WIDTH, LINE = 192, 48
# An image has so many times as many dots in each direction before the noise is taken out.
FINER = 2
BLUR = 7
# Lines of text in an image, and how many images of a hundred have so many: some are much more work than others.
LINES = [(1, 40), (2, 30), (4, 22), (10, 8)]
WORDS = "report market winter number letter garden simple double history science student message".split()


def image(random):
    """A noisy picture of lines of text, some of which stand on their heads: its PNG, and which lines do."""
    lines = random.choices([lines for lines, _ in LINES], [share for _, share in LINES])[0]
    flipped = [random.random() < 0.5 for _ in range(lines)]
    picture = numpy.concatenate([_line(random, is_flipped) for is_flipped in flipped])
    noise = numpy.random.default_rng(random.getrandbits(32)).random(picture.shape)
    picture[noise < 0.02] = 0
    picture[noise > 0.98] = 255
    return cv2.imencode(".png", picture)[1].tobytes(), flipped


def _line(random, is_flipped):
    row = numpy.full((LINE * FINER, WIDTH * FINER), 255, numpy.uint8)
    place = (8 * FINER, 34 * FINER)
    cv2.putText(row, random.choice(WORDS), place, cv2.FONT_HERSHEY_SIMPLEX, 1.2 * FINER, 20, 3 * FINER, cv2.LINE_AA)
    return cv2.rotate(row, cv2.ROTATE_180) if is_flipped else row


def blur(body):
    """The first stage: the noise is taken out, and the image made as small as the network wants it."""
    picture = cv2.imdecode(numpy.frombuffer(body, numpy.uint8), cv2.IMREAD_GRAYSCALE)
    if picture is None or picture.shape[1] != WIDTH * FINER or picture.shape[0] % (LINE * FINER):
        raise ValueError("expected an image of lines")
    clear = cv2.medianBlur(picture, BLUR)
    small = cv2.resize(clear, (WIDTH, picture.shape[0] // FINER), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".png", small)[1].tobytes()


class Classifier:
    """The second stage: which lines stand on their heads, by the network of a package."""

    def __init__(self):
        found = importlib.util.find_spec("rapidocr_onnxruntime")
        model = pathlib.Path(found.origin).parent / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
        options = onnxruntime.SessionOptions()
        # The thread of the request does all of it.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name

    def flipped(self, body):
        """For each line whether it stands on its head."""
        picture = cv2.imdecode(numpy.frombuffer(body, numpy.uint8), cv2.IMREAD_COLOR)
        if picture is None or picture.shape[1] != WIDTH or picture.shape[0] % LINE:
            raise ValueError("expected an image of lines")
        rows = picture.reshape(-1, LINE, WIDTH, 3).transpose(0, 3, 1, 2)
        scores = self._session.run(None, {self._input: (rows.astype("float32") / 255 - 0.5) / 0.5})[0]
        return [bool(score[1] > score[0]) for score in scores]
