-- KEYS lease, fence, sessions, info
-- ARGV lease, replica, lease ms
-- Returns {granted, clock us}, {lost} or {ended}.

local lease, fence, sessions, info = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ttl = tonumber(ARGV[3])

local err = foreign(lease, 'string') or foreign(fence, 'hash') or foreign(sessions, 'zset') or foreign(info, 'hash')
if err then
  return err
end
local us = now_us()
local ms = math.floor(us / 1000)
local till = ms + ttl -- one instant for the lease and the session
if redis.call('GET', lease) ~= ARGV[1] then
  return {'lost'}
end
if not session_end(sessions, ARGV[2], ms) then
  return {redis.call('ZSCORE', sessions, ARGV[2]) and 'lost' or 'ended'} -- time ends no session before the lease
end
redis.call('PEXPIREAT', lease, whole(till))
redis.call('PEXPIRE', fence, FENCE_MS + ttl)
set_session(sessions, info, ARGV[2], till, '', ms)
return {'granted', whole(us)}
