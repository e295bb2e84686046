# Registers the VIPs of stack.example.com with OpenStack. Written by vipgen openstack-hints.

terraform {
  required_version = ">= 1.7"
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}

locals {
  # The ports of the nodes, with the VIPs that each node can hold.
  ports = {
    "87295f6b-75ed-4420-9548-a37d4ae137fc" = { id = true, vips = ["192.168.25.11", "fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb"] }
    "stack-master-0" = { id = false, vips = ["192.168.25.10", "fd2e:6f44:5dd8:c956:f816:3eff:fec3:5955"] }
  }
}

data "openstack_networking_port_v2" "node" {
  for_each = local.ports
  name     = each.value.id ? null : each.key
  port_id  = each.value.id ? each.key : null
}

# The ports exist: Terraform adopts them to set their address pairs and leaves their other
# settings unchanged. Pairs from other sources are removed.
import {
  for_each = local.ports
  to       = openstack_networking_port_v2.node[each.key]
  id       = data.openstack_networking_port_v2.node[each.key].id
}

resource "openstack_networking_port_v2" "node" {
  for_each   = local.ports
  network_id = data.openstack_networking_port_v2.node[each.key].network_id

  dynamic "allowed_address_pairs" {
    for_each = each.value.vips
    content {
      ip_address = allowed_address_pairs.value
    }
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes = [
      admin_state_up, binding, description, device_id, device_owner, dns_name, extra_dhcp_option, fixed_ip, mac_address,
      name, network_id, no_fixed_ip, no_security_groups, port_security_enabled, qos_policy_id, security_group_ids, tags,
      tenant_id, value_specs,
    ]
  }
}

locals {
  # The VIPs, by the Neutron port that reserves them. No server uses these ports.
  vips = {
    "api" = {
      id          = false
      port        = "stack-api-port"
      addresses   = { "192.168.25.10" = "192.168.25.0/24", "fd2e:6f44:5dd8:c956:f816:3eff:fec3:5955" = "fd2e:6f44:5dd8:c956::/64" }
      floating_ip = "203.0.113.10"
      fixed_ip    = "192.168.25.10"
    }
    "ingress" = {
      id          = false
      port        = "stack-ingress-port"
      addresses   = { "192.168.25.11" = "192.168.25.0/24", "fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb" = "fd2e:6f44:5dd8:c956::/64" }
      floating_ip = "203.0.113.11"
      fixed_ip    = "192.168.25.11"
    }
  }
}

data "openstack_networking_network_v2" "machine" {
  name = "machines"
}

data "openstack_networking_subnet_v2" "machine" {
  for_each   = toset(["192.168.25.0/24", "fd2e:6f44:5dd8:c956::/64"])
  network_id = data.openstack_networking_network_v2.machine.id
  cidr       = each.key
}

resource "openstack_networking_port_v2" "vip" {
  for_each   = local.vips
  name       = each.value.port
  network_id = data.openstack_networking_network_v2.machine.id

  dynamic "fixed_ip" {
    for_each = each.value.addresses
    content {
      ip_address = fixed_ip.key
      subnet_id  = data.openstack_networking_subnet_v2.machine[fixed_ip.value].id
    }
  }
}

resource "openstack_networking_floatingip_associate_v2" "vip" {
  for_each    = { for group, vip in local.vips : group => vip if vip.floating_ip != null }
  floating_ip = each.value.floating_ip
  fixed_ip    = each.value.fixed_ip
  port_id     = openstack_networking_port_v2.vip[each.key].id
}
