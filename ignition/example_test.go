package ignition_test

import (
	"fmt"

	"github.com/vipgen/vipgen/ignition"
)

// A file for all workers as a MachineConfig, and decoded again.
func ExampleEncoder_MachineConfig() {
	target, err := ignition.ParseTarget(ignition.OpenShift, "4.18")
	if err != nil {
		fmt.Println(err)
		return
	}
	encoder := ignition.NewEncoder(target)
	config, err := encoder.MachineConfig(ignition.Bundle{
		Role: "worker", Files: []ignition.File{{Path: "/etc/motd", Mode: 0o644, Contents: []byte("hello\n")}},
	}, ignition.Metadata{Name: "99-worker-motd"})
	if err != nil {
		fmt.Println(err)
		return
	}
	documents, err := ignition.Decode("motd.yaml", config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range documents {
		fmt.Println(d.Source, d.Role, d.IgnitionVersion)
		for _, f := range d.Files {
			fmt.Printf("%s %o %s", f.Path, f.Mode, f.Contents)
		}
	}
	// Output:
	// MachineConfig 99-worker-motd worker 3.4.0
	// /etc/motd 644 hello
}
