package render_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/vipgen/vipgen/render"
)

// sources are the files of the bare-metal example, read by the caller: render touches no disk.
func sources() render.Sources {
	install, err := os.ReadFile("../examples/baremetal/install-config.yaml")
	if err != nil {
		panic(err)
	}
	return render.Sources{InstallConfig: render.File{Name: "install-config.yaml", Data: install}}
}

// The MachineConfigs of a cluster.
func ExampleCluster_Tree() {
	cluster, problems, err := render.Load(sources(), render.Options{OpenShiftVersion: "4.18"})
	if err != nil {
		fmt.Println(problems)
		return
	}
	files, err := cluster.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig}, Roles: []string{"master", "worker"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		fmt.Println(f.Path)
	}
	// Output:
	// machineconfigs/99-master-vipgen.yaml
	// machineconfigs/99-worker-vipgen.yaml
}

// All problems of an input are reported at once.
func ExampleLoad() {
	s := sources()
	s.InstallConfig.Data = bytes.ReplaceAll(s.InstallConfig.Data, []byte("192.0.2.5"), []byte("192.0.2.555"))
	s.VIPConfig = &render.File{Name: "vipgen.yaml", Data: []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {vrp: {}}\n")}
	_, problems, err := render.Load(s, render.Options{})
	for _, p := range problems {
		fmt.Println(p.File, p.Line, p.Code)
	}
	fmt.Println(err != nil)
	// Output:
	// install-config.yaml 25 bad-address
	// vipgen.yaml 3 unknown-field
	// true
}
