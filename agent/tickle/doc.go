// Package tickle has the clients of a VIP notice that the node which held it is dead.
//
// A client that only listens, as to a watch, hears nothing of that: the dead node is
// silent, and the node that the VIP has come to does not know the connection. So the
// holder of a VIP tells its peers who its clients are. The peer that gets the VIP sends
// each of them an ACK with a sequence number that the client does not expect. The client
// answers with an ACK of its own (RFC 9293 section 3.10.7.4). To that the new holder's
// kernel answers as it does where it knows no connection: with a reset that has the right
// number (RFC 9293 section 3.5.2). Samba's cluster (CTDB) does so too, and calls it a
// tickle ACK.
//
// The ACK itself ends nothing. A connection ends only if what its client sends reaches a
// node that does not know it, so that it is dead anyway; if the node does know it, such as
// when the VIP went back meanwhile, it goes on.
package tickle
