package gat

import (
	"io"
	"net/http"
)

// trailerBody fills the trailer of a call when the body ends: until then its caller may set values.
type trailerBody struct {
	io.ReadCloser
	from, to http.Header
}

func (body trailerBody) Read(bytes []byte) (int, error) {
	count, err := body.ReadCloser.Read(bytes)
	if err == io.EOF {
		fillTrailer(body.from, body.to)
	}
	return count, err
}

// fillTrailer copies what is there now, without tags.
func fillTrailer(from, to http.Header) {
	exchange(to, nil)
	for key, values := range from {
		to[key] = values
	}
	if values := valuesOf(to); len(values) > 0 {
		exchange(to, Strip(values))
	}
}

// stripTrailer has a call send the trailer of its caller without tags.
func stripTrailer(call *http.Request, trailer http.Header) {
	if trailer == nil {
		return
	}
	fillTrailer(trailer, call.Trailer)
	if call.Body == nil || call.Body == http.NoBody {
		return
	}
	call.Body = trailerBody{call.Body, trailer, call.Trailer}
	if getBody := call.GetBody; getBody != nil {
		call.GetBody = func() (io.ReadCloser, error) {
			body, err := getBody()
			if err != nil {
				return nil, err
			}
			return trailerBody{body, trailer, call.Trailer}, nil
		}
	}
}

// receivedBody fills the trailer of the request that a handler has when the body ends: the server knows another one.
type receivedBody struct {
	io.ReadCloser
	from, to *http.Request
}

func (body receivedBody) Read(bytes []byte) (int, error) {
	count, err := body.ReadCloser.Read(bytes)
	if err == io.EOF && body.from.Trailer != nil {
		if body.to.Trailer == nil {
			body.to.Trailer = make(http.Header)
		}
		fillTrailer(body.from.Trailer, body.to.Trailer)
	}
	return count, err
}
