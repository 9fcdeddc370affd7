"""A runtime of MLServer, which speaks the Open Inference Protocol (V2) over HTTP and gRPC.

`mlserver start .` in this folder, with `model.qwyc` beside `model-settings.json`. The request has one
tensor, (N, n_features); the response has label, steps, score and complete, (N,) each."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri

import qwyc


class QwycRuntime(MLModel):
    """Decides rows with a classifier from a `.qwyc` file."""

    async def load(self) -> bool:
        """Read the file that `parameters.uri` of model-settings.json names."""
        self.classifier = qwyc.load(await get_model_uri(self._settings))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The decision of every row of the first tensor."""
        rows = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        decided = self.classifier.decide(rows)
        outputs = []
        for name in ("label", "steps", "score", "complete"):
            values = getattr(decided, name)
            if values.dtype.kind in "OUS":
                outputs.append(StringCodec.encode_output(name, [str(value) for value in values]))
            else:
                outputs.append(NumpyCodec.encode_output(name, values))
        return InferenceResponse(model_name=self.name, outputs=outputs)
