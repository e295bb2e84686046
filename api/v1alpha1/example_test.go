package v1alpha1_test

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// OpenShift derives the same virtual router IDs, so a running cluster keeps its own.
func ExampleRouterIDs() {
	ids := v1alpha1.RouterIDs("cnf10")
	fmt.Println("API", ids.API, "ingress", ids.Ingress, "DNS", ids.DNS)
	// Output: API 147 ingress 2 DNS 158
}

// A node that finds a mistake in its mode file keeps its VRRP settings.
func ExampleParseModeFile() {
	content, err := v1alpha1.ParseModeFile([]byte("mode: unicast\nprofile: virtual\n"))
	fmt.Println(content.Mode, content.Profile, err)

	_, err = v1alpha1.ParseModeFile([]byte("mode: broadcast\n"))
	fmt.Println(err != nil)
	// Output:
	// unicast virtual <nil>
	// true
}
