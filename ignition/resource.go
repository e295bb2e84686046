package ignition

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"

	"github.com/vincent-petithory/dataurl"
)

// Bounds for a Decoder's unpacked contents: of a file, and of all files. A kilobyte of gzip can
// unpack to a megabyte, and rejected contents have been unpacked as well, so they count. A
// MachineConfig has 1.5 MiB at most, which is etcd's limit for an object.
const (
	maxFile    = 16 << 20
	maxDecoded = 64 << 20
)

// resource is the source of contents, in Ignition 2 and 3.
type resource struct {
	Source      *string `json:"source"`
	Compression string  `json:"compression"`
}

// contents decodes a resource. remote is set where the contents are elsewhere. A missing source
// is an empty file.
func (d *decoder) contents(r resource) (contents []byte, remote string, err error) {
	if r.Source == nil || *r.Source == "" {
		return nil, "", nil
	}
	u, err := url.Parse(*r.Source)
	if err != nil {
		return nil, "", fmt.Errorf("the source is not a URL")
	}
	if u.Scheme != "data" {
		return nil, withoutSecrets(u), nil
	}
	decoded, err := decodeDataURL(*r.Source)
	if err != nil {
		return nil, "", err
	}
	switch r.Compression {
	case "":
		contents, err = d.all.spend(decoded, nil)
		return contents, "", err
	case "gzip":
		contents, err = d.all.gunzip(decoded)
		return contents, "", err
	}
	return nil, "", fmt.Errorf("unknown compression %q", r.Compression)
}

// decodeDataURL parses a data URL with Ignition's library. Its errors may quote contents, so
// they are not passed on.
func decodeDataURL(source string) ([]byte, error) {
	u, err := dataurl.DecodeString(source)
	if err != nil {
		return nil, fmt.Errorf("the source is not a valid data URL")
	}
	return u.Data, nil
}

func (all *Decoder) gunzip(compressed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("the contents are not gzip: %w", err)
	}
	contents, err := io.ReadAll(io.LimitReader(z, min(maxFile, maxDecoded-all.unpacked)+1))
	if err != nil {
		err = fmt.Errorf("the contents are not gzip: %w", err)
	}
	return all.spend(contents, err)
}

// spend counts unpacked bytes against the bounds, also those of rejected contents.
func (all *Decoder) spend(contents []byte, err error) ([]byte, error) {
	n := int64(len(contents))
	room := maxDecoded - all.unpacked
	all.unpacked += min(n, room)
	switch {
	case n > maxFile:
		return nil, fmt.Errorf("the contents are more than %d MiB", maxFile>>20)
	case n > room:
		return nil, fmt.Errorf("the contents of all files are more than %d MiB", maxDecoded>>20)
	case err != nil:
		return nil, err
	}
	return contents, nil
}

// withoutSecrets returns a URL without user, password, query and fragment, which may hold
// credentials and signatures.
func withoutSecrets(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.Opaque != "" {
		bare.Opaque = "..."
	}
	return bare.String()
}

func remoteName(source *string) string {
	if source == nil {
		return "nothing"
	}
	u, err := url.Parse(*source)
	switch {
	case err != nil:
		return "an invalid URL"
	case u.Scheme == "data":
		return "a data URL"
	}
	return withoutSecrets(u)
}
