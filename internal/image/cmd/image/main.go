// Command image builds container images without a registry: see docs/install.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/image/manual"
	"github.com/vipgen/vipgen/render"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	c := &cobra.Command{Use: "image", Short: "Make container images without a registry", SilenceErrors: true, SilenceUsage: true}
	c.AddCommand(vipgenCommand(), daemonsCommand(), rootfsCommand(), releaseCommand())
	return c
}

// defaultNames returns the images that `vipgen images` prints by default.
func defaultNames() v1alpha1.Images { return render.DefaultImages("") }

func vipgenCommand() *cobra.Command {
	var s image.Source
	var name, output, platforms string
	c := &cobra.Command{
		Use:   "vipgen",
		Short: "Make vipgen's own image, for all platforms, as an OCI archive with its bills of materials",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return write(output, func(work string, at time.Time) ([]*image.Image, error) {
				list, err := parse(platforms, image.Platforms())
				if err != nil {
					return nil, err
				}
				i, err := image.Vipgen(c.Context(), s, name, list, at, work)
				return []*image.Image{i}, err
			})
		},
	}
	c.Flags().StringVar(&s.Dir, "source", ".", "checkout of vipgen")
	c.Flags().StringVar(&s.Version, "version", "devel", "version that programs, label and bills of materials give")
	c.Flags().StringVar(&name, "name", defaultNames().Agent, "name with tag")
	c.Flags().StringVar(&output, "output", "bin/image", "directory to write into")
	c.Flags().StringVar(&platforms, "platforms", names(image.Platforms()), "comma-separated list")
	return c
}

func daemonsCommand() *cobra.Command {
	var output, coredns, openshift string
	c := &cobra.Command{
		Use:   "daemons",
		Short: "Make images of keepalived, HAProxy and CoreDNS for tests, from Debian packages and a coredns binary",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return write(output, func(_ string, at time.Time) ([]*image.Image, error) {
				return image.Daemons(render.DefaultImages(openshift), coredns, at)
			})
		},
	}
	c.Flags().StringVar(&output, "output", "bin/image", "directory to write into")
	c.Flags().StringVar(&coredns, "coredns", ".cache/bin/coredns", "program")
	c.Flags().StringVar(&openshift, "openshift-version", "", "that of the images' tags; default: the newest known")
	return c
}

func rootfsCommand() *cobra.Command {
	var s image.Source
	var platform, output string
	c := &cobra.Command{
		Use:   "rootfs",
		Short: "Write what vipgen's image holds on one platform into a directory, for the Containerfile",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := parse(platform, image.Platforms())
			if err != nil {
				return err
			}
			at, err := epoch()
			if err != nil {
				return err
			}
			work, err := os.MkdirTemp("", "vipgen-image-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(work)
			content, err := image.VipgenContent(c.Context(), s, list[0], at, work)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(output, 0o755); err != nil {
				return err
			}
			return content.Rootfs.Unpack(output, at)
		},
	}
	c.Flags().StringVar(&s.Dir, "source", ".", "checkout of vipgen")
	c.Flags().StringVar(&s.Version, "version", "devel", "version that programs and the bill of materials give")
	c.Flags().StringVar(&platform, "platform", "linux/amd64", "one platform")
	c.Flags().StringVar(&output, "output", "", "directory to write into, empty or not there yet")
	c.MarkFlagRequired("output")
	return c
}

func releaseCommand() *cobra.Command {
	var r image.Release
	var output, archives, images, key string
	c := &cobra.Command{
		Use:   "release",
		Short: "Make what people download: archives, vipgen's image, bills of materials, checksums, provenance",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if r.Archives, err = parse(archives, image.ArchivePlatforms()); err != nil {
				return err
			}
			if r.Image, err = parse(images, image.Platforms()); err != nil {
				return err
			}
			if r.Time, err = epoch(); err != nil {
				return err
			}
			if r.Extra, err = manual.Files(c.Context(), r.Source); err != nil {
				return err
			}
			if key != "" {
				if r.Signer, err = image.ReadSigner(key); err != nil {
					return err
				}
			}
			work, err := os.MkdirTemp("", "vipgen-release-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(work)
			pinned, err := r.Write(c.Context(), output, work)
			if err != nil {
				return err
			}
			fmt.Println(pinned)
			return nil
		},
	}
	c.Flags().StringVar(&r.Dir, "source", ".", "checkout of vipgen")
	c.Flags().StringVar(&r.Version, "version", "", "such as v1.2.3")
	c.Flags().StringVar(&r.Name, "name", defaultNames().Agent, "the image's name with its tag")
	c.Flags().StringVar(&output, "output", "", "directory to write into, empty or not there yet")
	c.Flags().StringVar(&archives, "archives", names(image.ArchivePlatforms()), "comma-separated platforms of archives")
	c.Flags().StringVar(&images, "platforms", names(image.Platforms()), "comma-separated platforms of the image")
	c.Flags().StringVar(&key, "key", "", "PEM file with a private key (ECDSA P-256) that signs checksums and provenance; default: unsigned")
	c.MarkFlagRequired("version")
	c.MarkFlagRequired("output")
	return c
}

// write builds images and writes, for each, the archive, the bills of materials and a file with
// its name and digest, which it prints.
func write(output string, make func(work string, at time.Time) ([]*image.Image, error)) error {
	at, err := epoch()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(output, ".work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	images, err := make(work, at)
	if err != nil {
		return err
	}
	for _, i := range images {
		pinned, err := i.Write(output)
		if err != nil {
			return err
		}
		fmt.Println(pinned)
	}
	return nil
}

// epoch returns the time of everything in an image: SOURCE_DATE_EPOCH, in seconds
// (reproducible-builds.org), else 1970.
func epoch() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; expected seconds since 1970, such as the output of `git log -1 --format=%%ct`", text)
	}
	return time.Unix(seconds, 0), nil
}

func names(list []v1.Platform) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

// parse parses a list of known platforms.
func parse(list string, known []v1.Platform) ([]v1.Platform, error) {
	var out []v1.Platform
	for name := range strings.SplitSeq(list, ",") {
		p, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w", name, err)
		}
		if !slices.ContainsFunc(known, p.Equals) {
			return nil, fmt.Errorf("platform %q: expected one of %s", name, names(known))
		}
		out = append(out, *p)
	}
	return out, nil
}
