package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// fleetSizes must show linear growth.
var fleetSizes = []int{50, 500, 5000}

const benchCluster = `apiVersion: v1
baseDomain: example.com
metadata:
  name: cluster-%[1]d
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 10.%[2]d.%[3]d.0/24
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 3
platform:
  %[4]s:
    apiVIPs:
    - 10.%[2]d.%[3]d.10
    ingressVIPs:
    - 10.%[2]d.%[3]d.11
    loadBalancer:
      type: UserManaged
pullSecret: '{"auths":{}}'
sshKey: ssh-ed25519 AAAA
`

// layFleet writes a fleet on four platforms, each cluster with three pools.
func layFleet(b *testing.B, dir string, size int) {
	b.Helper()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		testkit.WriteFile(b, name, []byte(text))
	}
	const head = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\n"
	write("fleet.yaml", head+"spec:\n  openshiftVersion: \"4.18\"\n  vrrp: {profile: classic}\n")
	for n := range size {
		platform := []string{"baremetal", "vsphere", "openstack", "nutanix"}[n%4]
		at := fmt.Sprintf("clusters/cluster-%d/", n)
		write(at+"install-config.yaml", fmt.Sprintf(benchCluster, n, n/256, n%256, platform))
		write(at+"vipgen.yaml", head+"spec:\n  pools:\n  - name: infra\n")
	}
}

// usage is the resource usage of a process.
type usage struct {
	wall, cpu time.Duration
	peak      int64 // KiB
}

func (u usage) String() string {
	return fmt.Sprintf("%8.2f s  %8.2f s of cores  %6.1f MiB", u.wall.Seconds(), u.cpu.Seconds(), float64(u.peak)/1024)
}

// measure runs a program to its end. GOMAXPROCS keeps it to two cores.
func measure(b *testing.B, dir, program string, args ...string) usage {
	b.Helper()
	c := exec.Command(program, args...)
	var errOut bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, io.Discard, &errOut
	c.Env = append(os.Environ(), "GOMAXPROCS=2")
	start := time.Now()
	if err := c.Run(); err != nil {
		b.Fatalf("%s %v: %v\n%.2000s", program, args, err, errOut.String())
	}
	state := c.ProcessState
	return usage{time.Since(start), state.UserTime() + state.SystemTime(), state.SysUsage().(*syscall.Rusage).Maxrss}
}

// written finds the newest change of any file.
func written(b *testing.B, dir string) (last time.Time, files int) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files++
			if info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
		return err
	})
	testkit.Must(b, err)
	return last, files
}

// BenchmarkFleet renders fleets to disk, again without a change, and checks them; and looks for
// colliding virtual router IDs. Run it with -benchtime 1x: it prints a table.
func BenchmarkFleet(b *testing.B) {
	program := testkit.Vipgen(b)
	load, _ := os.ReadFile("/proc/loadavg")
	b.Logf("load of the machine before: %s", strings.TrimSpace(string(load)))
	// Nothing is removed before the end: ext4 takes long to make files for a minute
	// after many were removed.
	all := b.TempDir()
	for _, size := range fleetSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			runs := 0
			for b.Loop() {
				benchFleet(b, program, filepath.Join(all, fmt.Sprintf("%d-%d", size, runs)), size)
				runs++
			}
		})
	}
}

func benchFleet(b *testing.B, program, dir string, size int) {
	b.StopTimer()
	layFleet(b, dir, size)
	render := []string{"render", "clusters", "--dir", "out", "--format", "machineconfig"}
	// How long a disk takes differs from one moment to the next: the one in the
	// middle of three counts.
	var firsts []usage
	for _, out := range []string{"out-1", "out-2", "out"} {
		render[3] = out
		b.StartTimer()
		firsts = append(firsts, measure(b, dir, program, render...))
		b.StopTimer()
	}
	slices.SortFunc(firsts, func(x, y usage) int { return cmp.Compare(x.wall, y.wall) })
	first := firsts[1]
	before, files := written(b, filepath.Join(dir, "out"))
	again := measure(b, dir, program, render...)
	if after, _ := written(b, filepath.Join(dir, "out")); after != before {
		b.Error("the second run has written something")
	}
	check := measure(b, dir, program, append(render, "--check")...)
	ids := measure(b, dir, program, "vr-ids", "clusters")
	rate := func(u usage) float64 { return float64(size) / u.wall.Seconds() }
	b.Logf("%d clusters, %d files; first runs took %.2f to %.2f s", size, files, firsts[0].wall.Seconds(), firsts[2].wall.Seconds())
	for _, row := range []struct {
		name string
		usage
	}{{"first", first}, {"again", again}, {"--check", check}, {"vr-ids", ids}} {
		b.Logf("  %-8s %v  %8.0f clusters/s", row.name, row.usage, rate(row.usage))
	}
	b.Logf("  again is %.1f times as fast, --check %.1f times", first.wall.Seconds()/again.wall.Seconds(), first.wall.Seconds()/check.wall.Seconds())
	b.ReportMetric(rate(first), "clusters/s")
	b.ReportMetric(float64(first.peak)/1024, "MiB-peak")
	b.ReportMetric(first.wall.Seconds()/again.wall.Seconds(), "again-ratio")
	b.ReportMetric(ids.wall.Seconds(), "s/vr-ids")
	b.StartTimer()
}
