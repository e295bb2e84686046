package image

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a root file system as a compressed tar, kept in a file: the programs in it are
// large, and compressing takes longest.
type layer struct {
	file         string
	size         int64
	digest, diff v1.Hash
}

// newLayer writes the layer into a file. Go's gzip writes no name and no time.
func newLayer(r *Rootfs, at time.Time, file string) (*layer, error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	packed, plain := sha256.New(), sha256.New()
	zip := gzip.NewWriter(io.MultiWriter(out, packed))
	if err := r.tar(io.MultiWriter(zip, plain), at); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}
	return &layer{file, info.Size(), sum(packed), sum(plain)}, out.Close()
}

func sum(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.diff, nil }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.OCILayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return openZip(l.file) }

// unzipped closes the file with the reader.
type unzipped struct {
	*gzip.Reader
	file *os.File
}

func (u unzipped) Close() error { return u.file.Close() }

func openZip(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return unzipped{zip, f}, nil
}
