# Registers the VIPs of cnf10.example.com with OpenStack. Written by vipgen openstack-hints.

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
    "cnf10-master-0" = { id = false, vips = ["10.0.0.5", "10.0.0.6"] }
    "cnf10-master-1" = { id = false, vips = ["10.0.0.5", "10.0.0.6"] }
    "cnf10-master-2" = { id = false, vips = ["10.0.0.5", "10.0.0.6"] }
    "cnf10-worker-0" = { id = false, vips = ["10.0.0.7"] }
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
      port        = "cnf10-api-port"
      addresses   = { "10.0.0.5" = "10.0.0.0/16" }
      floating_ip = "203.0.113.10"
      fixed_ip    = "10.0.0.5"
    }
    "ingress" = {
      id          = true
      port        = "c3c14e9d-750f-46fb-af9c-e9fd375719b2"
      addresses   = { "10.0.0.7" = "10.0.0.0/16" }
      floating_ip = "203.0.113.11"
      fixed_ip    = "10.0.0.7"
    }
  }
}

data "openstack_networking_port_v2" "vip" {
  for_each = local.vips
  name     = each.value.id ? null : each.value.port
  port_id  = each.value.id ? each.value.port : null
}

resource "openstack_networking_floatingip_associate_v2" "vip" {
  for_each    = { for group, vip in local.vips : group => vip if vip.floating_ip != null }
  floating_ip = each.value.floating_ip
  fixed_ip    = each.value.fixed_ip
  port_id     = data.openstack_networking_port_v2.vip[each.key].id
}
