package v1alpha1

// RouterID returns the virtual router ID that OpenShift derives from the same text: an 8-bit
// Fletcher checksum over its bytes, plus one because VRRP has no router 0. The sums wrap at 8
// bits before the modulus is taken, as in running clusters, whose IDs must not change.
func RouterID(text string) int {
	var a, b uint8
	for i := range len(text) {
		a = (a + text[i]) % 15
		b = (b + a) % 15
	}
	return int(b<<4|a) + 1
}

// RouterIDs returns the derived IDs of a cluster's API, ingress and DNS VIPs. Ingress gets the
// next ID where it would equal the API's.
func RouterIDs(cluster string) VirtualRouterIDs {
	ids := VirtualRouterIDs{
		API:     RouterID(cluster + "-api"),
		Ingress: RouterID(cluster + "-ingress"),
		DNS:     RouterID(cluster + "-dns"),
	}
	if ids.Ingress == ids.API {
		ids.Ingress++
	}
	return ids
}
