// Package metallb puts what `vipgen metallb` prints to MetalLB: its Go types, the
// schemas of its CRDs, a real kube-apiserver that has them, MetalLB's own controller,
// which gives the Service its address, and its speaker, which answers for it.
//
// It is a module of its own, so that MetalLB's libraries are not vipgen's.
package metallb
