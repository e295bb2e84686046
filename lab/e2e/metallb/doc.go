// Package metallb tests the output of `vipgen metallb` with MetalLB: a real kube-apiserver with its
// CRDs, MetalLB's controller, which assigns the Service's address, and its speaker, which answers
// for it.
//
// It is a module of its own, so that vipgen does not depend on MetalLB's libraries.
package metallb
