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
    "it's $(not) $${run}" = { id = false, vips = ["10.0.0.5"] }
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
